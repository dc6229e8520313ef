package policy

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

const ms = time.Millisecond

func TestWaits(t *testing.T) {
	t.Parallel()
	feign := func(period, maxPeriod time.Duration) Waits {
		return Waits{Initial: period, Factor: 1.5, Max: maxPeriod, GrowFirst: true, WholeMilliseconds: true}
	}
	tests := []struct {
		name  string
		waits Waits
		u     float64
		want  []time.Duration
	}{
		{"none", Waits{}, 0.5, []time.Duration{0, 0, 0}},
		{"fixed", FixedWait(time.Second), 0.5, []time.Duration{time.Second, time.Second, time.Second}},
		{"feign 100 ms, 1 s", feign(100*ms, time.Second), 0, []time.Duration{150 * ms, 225 * ms, 337 * ms, 506 * ms, 759 * ms, time.Second, time.Second}},
		{"feign 1 s, 1 s", feign(time.Second, time.Second), 0, []time.Duration{time.Second, time.Second}},
		{"feign 100 ms, 2 s", feign(100*ms, 2*time.Second), 0, []time.Duration{150 * ms, 225 * ms, 337 * ms, 506 * ms, 759 * ms, 1139 * ms, 1708 * ms, 2 * time.Second}},
		{"feign 1 ms, 1 s", feign(ms, time.Second), 0, []time.Duration{ms, 2 * ms, 3 * ms, 5 * ms, 7 * ms, 11 * ms, 17 * ms}},
		{"doubling", Waits{Initial: time.Second, Factor: 2, Max: 5 * time.Second}, 0, []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 5 * time.Second, 5 * time.Second}},
		{"urllib3", Waits{Initial: 200 * ms, Factor: 2, Max: 120 * time.Second, FirstAtOnce: true}, 0, []time.Duration{0, 400 * ms, 800 * ms, 1600 * ms}},
		{"a series", Waits{Series: []time.Duration{0, 7 * ms, 3 * ms}, Initial: time.Second}, 0.5, []time.Duration{0, 7 * ms, 3 * ms, 3 * ms}},
		{"full jitter, low", Waits{Initial: time.Second, Factor: 2, Jitter: FullJitter}, 0, []time.Duration{0, 0, 0}},
		{"full jitter, middle", Waits{Initial: time.Second, Factor: 2, Jitter: FullJitter}, 0.5, []time.Duration{500 * ms, time.Second, 2 * time.Second}},
		{"equal jitter, low", Waits{Initial: time.Second, Factor: 2, Jitter: EqualJitter}, 0, []time.Duration{500 * ms, time.Second, 2 * time.Second}},
		{"equal jitter, middle", Waits{Initial: time.Second, Factor: 2, Jitter: EqualJitter}, 0.5, []time.Duration{750 * ms, 1500 * ms, 3 * time.Second}},
		{"decorrelated, low", Waits{Initial: time.Second, Factor: 3, Max: 10 * time.Second, Jitter: DecorrelatedJitter}, 0, []time.Duration{time.Second, time.Second, time.Second}},
		{"decorrelated, middle", Waits{Initial: time.Second, Factor: 3, Max: 6 * time.Second, Jitter: DecorrelatedJitter}, 0.5, []time.Duration{2 * time.Second, 3500 * ms, 3500 * ms}},
		{"a share either way, low", Waits{Initial: time.Second, Factor: 2, Jitter: "20%"}, 0, []time.Duration{800 * ms, 1600 * ms}},
		{"a share either way, middle", Waits{Initial: time.Second, Factor: 2, Jitter: "20%"}, 0.5, []time.Duration{time.Second, 2 * time.Second}},
		{"a share either way, high", Waits{Initial: time.Second, Factor: 2, Jitter: "20%"}, 1, []time.Duration{1200 * ms, 2400 * ms}},
		{"axios exponentialDelay, middle", Waits{Initial: 200 * ms, Factor: 2, Jitter: "+20%"}, 0.5, []time.Duration{220 * ms, 440 * ms, 880 * ms}},
		{"a share less, high", Waits{Initial: time.Second, Jitter: "-25%"}, 1, []time.Duration{time.Second}},
		{"envoy, high", Waits{Initial: 25 * ms, Factor: 2, Max: 250 * ms, Growth: LessOne, Jitter: FullJitter}, 1, []time.Duration{25 * ms, 75 * ms, 175 * ms, 250 * ms, 250 * ms}},
		{"envoy, low", Waits{Initial: 25 * ms, Factor: 2, Max: 250 * ms, Growth: LessOne, Jitter: FullJitter}, 0, []time.Duration{0, 0}},
		{"stripe-go, high", Waits{Initial: 500 * ms, Max: 5 * time.Second, Growth: SquareSteps, Jitter: "-25%", Min: 500 * ms}, 1, []time.Duration{500 * ms, time.Second, 2500 * ms, 5 * time.Second}},
		{"stripe-go, low", Waits{Initial: 500 * ms, Max: 5 * time.Second, Growth: SquareSteps, Jitter: "-25%", Min: 500 * ms}, 0, []time.Duration{500 * ms, 750 * ms, 1875 * ms, 3750 * ms}},
		{"got, high", Waits{Initial: time.Second, Factor: 2, Noise: 100 * ms}, 1, []time.Duration{1100 * ms, 2100 * ms}},
		{"aws, high", Waits{Initial: time.Second, Factor: 2, Max: 20 * time.Second, GrowFirst: true, Jitter: FullJitter, ExactAtMax: true}, 1, []time.Duration{2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 20 * time.Second}},
		{"aws, low", Waits{Initial: time.Second, Factor: 2, Max: 20 * time.Second, GrowFirst: true, Jitter: FullJitter, ExactAtMax: true}, 0, []time.Duration{0, 0, 0, 0, 20 * time.Second}},
		{"not a jitter", Waits{Initial: time.Second, Jitter: "some"}, 0.5, []time.Duration{time.Second}},
		{"u below its range", Waits{Initial: time.Second, Jitter: FullJitter}, -1, []time.Duration{0}},
		{"u above its range", Waits{Initial: time.Second, Jitter: FullJitter}, 2, []time.Duration{time.Second}},
		{"u not a number", Waits{Initial: time.Second, Jitter: FullJitter}, math.NaN(), []time.Duration{0}},
		{"factor below its range", Waits{Initial: time.Second, Factor: 0.5}, 0, []time.Duration{time.Second, time.Second}},
		{"initial above max", Waits{Initial: time.Minute, Factor: 2, Max: time.Second}, 0, []time.Duration{time.Second, time.Second}},
		{"negative", Waits{Initial: -time.Second, Factor: 2}, 0, []time.Duration{0, 0}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var got []time.Duration
			var waited time.Duration
			for n := range tt.want {
				waited = tt.waits.Before(n+1, waited, tt.u)
				got = append(got, waited)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("waits (-want +got):\n%s", diff)
			}
		})
	}
	if got := (Waits{Initial: time.Second}).Before(0, 0, 0); got != 0 {
		t.Errorf("before retry 0: %v", got)
	}
	if got := (Waits{Initial: time.Second, Factor: 10}).Before(1_000_000, 0, 0); got != Forever {
		t.Errorf("without a limit: %v, want Forever", got)
	}
}

// TestFeignArithmetic compares with whole numbers: floor(period·3^k / 2^k) is what the original's
// arithmetic in doubles comes to wherever it is below the cap.
func TestFeignArithmetic(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		period := rapid.Int64Range(1, 10_000).Draw(t, "period")
		k := rapid.IntRange(1, 20).Draw(t, "k")
		three, two := int64(1), int64(1)
		for range k {
			three *= 3
			two *= 2
		}
		w := Waits{Initial: time.Duration(period) * ms, Factor: 1.5, GrowFirst: true, WholeMilliseconds: true}
		if got, want := w.Before(k, 0, 0), time.Duration(period*three/two)*ms; got != want {
			t.Fatalf("wait %d of period %d ms: %v, want %v", k, period, got, want)
		}
	})
}
