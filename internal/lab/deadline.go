package lab

import (
	"strconv"
	"time"
)

// deadlineUnits are the units of a deadline on the wire, finest first.
var deadlineUnits = []struct {
	letter byte
	unit   time.Duration
}{
	{'n', time.Nanosecond}, {'u', time.Microsecond}, {'m', time.Millisecond},
	{'S', time.Second}, {'M', time.Minute}, {'H', time.Hour},
}

// maxDeadline is the largest number that a deadline on the wire may have: eight digits.
const maxDeadline = 99_999_999

// FormatDeadline writes the time that is left for a request as gRPC's header grpc-timeout has it: at
// most eight digits and a unit, rounded up, in the finest unit that can hold it. It is a time that is
// left and no time of day: the clocks of two machines need not agree.
func FormatDeadline(left time.Duration) string {
	left = max(left, 0)
	for _, u := range deadlineUnits {
		if n := (left + u.unit - 1) / u.unit; n <= maxDeadline {
			return strconv.FormatInt(int64(n), 10) + string(u.letter)
		}
	}
	return strconv.Itoa(maxDeadline) + "H"
}

// ParseDeadline reads what FormatDeadline wrote. It reports false where that is none.
func ParseDeadline(text string) (left time.Duration, ok bool) {
	if len(text) < 2 || len(text) > 9 {
		return 0, false
	}
	n, err := strconv.ParseUint(text[:len(text)-1], 10, 32)
	if err != nil {
		return 0, false
	}
	for _, u := range deadlineUnits {
		if text[len(text)-1] == u.letter {
			if limit := uint64((1<<63 - 1) / u.unit); n > limit {
				n = limit
			}
			return time.Duration(n) * u.unit, true
		}
	}
	return 0, false
}
