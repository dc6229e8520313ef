package caller

import (
	"net/http"
	"net/url"
	"strconv"

	"retrylab/caller/policy"
)

// maxRedirects is how many redirects a client follows for one send, as browsers and net/http do
// about.
const maxRedirects = 10

// follower follows redirects below all layers: to them it is one send, at the server it is several
// requests.
type follower struct{ next http.RoundTripper }

// RoundTrip sends req and follows where the answers lead. A 301, 302 or 303 makes a GET without a
// body of it, as most clients do and RFC 9110, section 15.4, allows; a 307 or 308 keeps both.
func (f follower) RoundTrip(req *http.Request) (*http.Response, error) {
	for n := 1; ; n++ {
		resp, err := f.next.RoundTrip(req)
		if err != nil {
			return nil, err
		}
		to := location(resp)
		if to == nil || n > maxRedirects {
			return resp, nil
		}
		resp.Body.Close()
		trip := TripOf(req.Context())
		if trip.redirected == "" {
			trip.redirected = trip.Path
		}
		trip.Path = trip.redirected + "/redirect." + strconv.Itoa(n)
		method := req.Method
		if resp.StatusCode < http.StatusTemporaryRedirect && method != http.MethodGet && method != http.MethodHead {
			method, trip.Body, trip.payload = http.MethodGet, policy.NoBody, emptied{trip.payload}
		}
		req = req.Clone(trip.with(req.Context()))
		req.Method, req.URL.Path, req.URL.RawQuery = method, to.Path, to.RawQuery
	}
}

// location is where an answer leads on the same service, nil where it leads nowhere.
func location(resp *http.Response) *url.URL {
	switch resp.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		to, err := url.Parse(resp.Header.Get("Location"))
		if err == nil && to.Host == "" && to.Path != "" {
			return to
		}
	}
	return nil
}

// emptied is a payload without its content.
type emptied struct{ payload }

func (emptied) content(string, int) []byte { return nil }
