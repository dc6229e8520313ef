package policy

import (
	"math"
	"strings"
	"time"
)

// Forever is the longest wait that this package gives: a hundred years. Larger values are cut to it,
// so that a wait can be added to a date of our time without overflow.
const Forever = 100 * 365 * 24 * time.Hour

// dateLayouts are the three forms of an HTTP-date that RFC 9110, section 5.6.7, asks a recipient to
// read: the one in use and two that are obsolete.
var dateLayouts = []string{
	"Mon, 02 Jan 2006 15:04:05 GMT",
	"Monday, 02-Jan-06 15:04:05 GMT",
	time.ANSIC,
}

// ParseRetryAfter reads the value of a Retry-After header: whole seconds or an HTTP-date. It returns
// how long to wait from now, and whether the value could be read.
//
//   - "7" is 7 s, "0" is 0; white space around the value is dropped.
//   - A date to come is the time until then; a date in the past is negative, and a layer that honours
//     it does not wait. A date has whole seconds only.
//   - A number of seconds or a date beyond [Forever] is Forever.
//   - A missing (empty) value, a sign ("-1", "+1"), a fraction ("1.5"), a list ("1, 2") and anything
//     else is not a Retry-After: 0 and false, as if the header were not there.
func ParseRetryAfter(value string, now time.Time) (time.Duration, bool) {
	value = strings.Trim(value, " \t")
	if value == "" {
		return 0, false
	}
	if seconds, ok := parseSeconds(value); ok {
		return seconds, true
	}
	for _, layout := range dateLayouts {
		date, err := time.ParseInLocation(layout, value, time.UTC)
		if err == nil {
			return min(date.Sub(now), Forever), true
		}
	}
	return 0, false
}

// parseSeconds reads digits and nothing else: strconv would accept a sign.
func parseSeconds(value string) (time.Duration, bool) {
	var seconds int64
	for _, c := range value {
		if c < '0' || c > '9' {
			return 0, false
		}
		if seconds < math.MaxInt64/10-9 {
			seconds = seconds*10 + int64(c-'0')
		}
	}
	if seconds > int64(Forever/time.Second) {
		return Forever, true
	}
	return time.Duration(seconds) * time.Second, true
}
