package lab

import (
	"testing"
	"time"
)

func TestClock(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0:                                     "0s",
		80 * time.Millisecond:                 "0.08s",
		12*time.Second + 13*time.Nanosecond:   "12s",
		90 * time.Second:                      "90s",
		1680 * time.Millisecond:               "1.68s",
		60150 * time.Millisecond:              "60.15s",
		599999 * time.Millisecond:             "599.999s",
		10 * time.Minute:                      "10m",
		90 * time.Minute:                      "1h30m",
		25*time.Hour + 1500*time.Millisecond:  "25h1.5s",
		-5 * time.Second:                      "-5s",
		24*time.Hour + 30*time.Minute:         "24h30m",
		10*time.Minute + 100*time.Millisecond: "10m0.1s",
		599999*time.Millisecond + 600_000*time.Nanosecond: "10m",
	} {
		if got := Clock(d); got != want {
			t.Errorf("Clock(%v) is %q, want %q", d, got, want)
		}
	}
}
