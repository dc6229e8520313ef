package policy

// The sets of methods that real layers retry, by library. They differ, and the differences are where
// a write is sent twice by one client and not by another.
var (
	// Idempotent holds the methods that RFC 9110, section 9.2.2, calls idempotent. Apache HttpClient 5
	// uses it for I/O errors, urllib3 for read errors and statuses.
	Idempotent = []string{"GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE"}

	// Bodiless holds the methods that cannot carry a body in Apache HttpClient 4.5, which takes these,
	// and not PUT, to be idempotent.
	Bodiless = []string{"GET", "HEAD", "DELETE", "OPTIONS", "TRACE"}

	// Replayable holds the methods that Go's transport sends again without an Idempotency-Key.
	Replayable = []string{"GET", "HEAD", "OPTIONS", "TRACE"}

	// GetOrHead holds the methods that java.net.http sends again.
	GetOrHead = []string{"GET", "HEAD"}

	// GetOnly holds the one method that Spring Cloud LoadBalancer retries by default.
	GetOnly = []string{"GET"}

	// NonIdempotent holds the methods that nginx does not pass on once sending has begun.
	NonIdempotent = []string{"POST", "LOCK", "PATCH"}
)

// AnyMethod is what a scenario file writes in a list of methods to mean all of them.
const AnyMethod = "any"
