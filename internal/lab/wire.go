package lab

import "encoding/json"

// What the lab's own caller and service say to each other over HTTP, beside an ordinary order. A
// foreign client need not know any of it.
const (
	HeaderOperation = "Retrylab-Operation" // the intent a request belongs to
	HeaderSend      = "Retrylab-Send"      // the path of tries that sent it
	HeaderKey       = "Idempotency-Key"
	HeaderTenant    = "X-Tenant"            // whose order it is, where the service has several customers
	HeaderReplayed  = "Idempotent-Replayed" // "true" on an answer that was stored before
	HeaderDeadline  = "Retrylab-Deadline"   // what is left of the time for a request: see [FormatDeadline]

	OrderPath  = "/orders"
	MovedPath  = "/moved/orders" // where a redirect leads
	HealthPath = "/healthz"

	// What became of an order: the path goes on with its key, or with the business number of its
	// intent.
	ResultPath    = "/results/"
	ReferencePath = "/references/"

	// The types of application/problem+json answers that a caller tells apart.
	ProblemInProgress = "urn:retrylab:problem:in-progress"  // the first request with this key is at work
	ProblemConflict   = "urn:retrylab:problem:key-conflict" // the key was used for another request
	ProblemDuplicate  = "urn:retrylab:problem:duplicate"    // it was asked for before, whatever became of that
	ProblemInjected   = "urn:retrylab:problem:injected"     // a status that a fault answered
	ProblemInvalid    = "urn:retrylab:problem:invalid"      // a request that is no order
	ProblemUpstream   = "urn:retrylab:problem:upstream"     // a hop got no answer from behind it
	ProblemBusy       = "urn:retrylab:problem:busy"         // the server has no worker for it, and no place to wait
	ProblemDeadline   = "urn:retrylab:problem:deadline"     // the time that the sender had given was over
	ProblemStore      = "urn:retrylab:problem:store"        // the database failed
	ProblemLimited    = "urn:retrylab:problem:rate-limit"   // more requests than the server lets in
	ProblemState      = "urn:retrylab:problem:state"        // the row that requests share is not as the change needs it
	ProblemLocked     = "urn:retrylab:problem:locked"       // another request holds the lock
	ProblemUnknownKey = "urn:retrylab:problem:unknown-key"  // nothing is known of a key
)

// OrderRequest is the body of an order; a request without a body carries the same as a query.
type OrderRequest struct {
	Item      string `json:"item"`
	Amount    int64  `json:"amount_minor"`
	Reference string `json:"reference,omitempty"`    // the business's own number of what is ordered
	SignedAt  int64  `json:"signed_at_ms,omitempty"` // of a request that is signed: when, in scenario time
}

// OrderReply is the body of an order's answer.
type OrderReply struct {
	Order  int64  `json:"order,omitempty"` // none where nothing had to be done
	Status string `json:"status"`
}

// ResultReply is what a service knows of a key, or of a business number.
type ResultReply struct {
	Key       string          `json:"key,omitempty"`
	Reference string          `json:"reference,omitempty"`
	Status    string          `json:"status"`           // processing, done or failed
	Orders    int             `json:"orders,omitempty"` // of a reference
	Code      int             `json:"code,omitempty"`
	Answer    json.RawMessage `json:"answer,omitempty"`
}

// Problem is the body of an answer that refuses, as RFC 9457 has it.
type Problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
}
