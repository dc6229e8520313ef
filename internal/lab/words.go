package lab

import (
	"strconv"
	"strings"
	"time"
)

// Clock writes a length or an instant of scenario time as people read it, to the millisecond: 0s, 0.1s, 60.15s,
// 1h30m. Seconds reach to ten minutes, since time-outs and waits are set in seconds.
func Clock(d time.Duration) string {
	if d < 0 {
		return "-" + Clock(-d)
	}
	if d = d.Round(time.Millisecond); d < 10*time.Minute {
		return seconds(d)
	}
	return Units(d)
}

// Units writes it in hours, minutes and seconds, of which it names those that there are.
func Units(d time.Duration) string {
	var b strings.Builder
	for _, unit := range []struct {
		length time.Duration
		name   byte
	}{{time.Hour, 'h'}, {time.Minute, 'm'}} {
		if n := d / unit.length; n > 0 {
			b.WriteString(strconv.FormatInt(int64(n), 10))
			b.WriteByte(unit.name)
		}
		d %= unit.length
	}
	if d > 0 || b.Len() == 0 {
		b.WriteString(seconds(d))
	}
	return b.String()
}

// seconds goes by whole milliseconds: d.Seconds() adds two fractions, and shows it in the last digit.
func seconds(d time.Duration) string {
	return strconv.FormatFloat(float64(d.Milliseconds())/1000, 'f', -1, 64) + "s"
}

// Count writes a number with its noun: 1 order, 2 orders.
func Count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return strconv.Itoa(n) + " " + noun
}
