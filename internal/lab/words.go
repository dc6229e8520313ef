package lab

import (
	"strconv"
	"strings"
	"time"
)

// Clock writes a length or an instant of scenario time as people read it: 0s, 0.1s, 60.15s, 1h30m. Seconds
// reach to ten minutes, since time-outs and waits are set in seconds; beyond that their fractions are of no
// interest.
func Clock(d time.Duration) string {
	if d < 0 {
		return "-" + Clock(-d)
	}
	if d < 10*time.Minute {
		return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + "s"
	}
	var b strings.Builder
	for _, unit := range []struct {
		length time.Duration
		name   byte
	}{{time.Hour, 'h'}, {time.Minute, 'm'}, {time.Second, 's'}} {
		if n := d / unit.length; n > 0 {
			b.WriteString(strconv.FormatInt(int64(n), 10))
			b.WriteByte(unit.name)
		}
		d %= unit.length
	}
	return b.String()
}
