package lab

import (
	"math"
	"time"
)

// MaxWindows bounds the windows of a [Series].
const MaxWindows = 10_000

// Series are counts over scenario time, in windows of one length from its beginning. The lists are
// equally long once Fill has been called.
type Series struct {
	WindowMs   int64 `json:"window_ms"`
	Operations []int `json:"operations"` // that began
	Starts     []int `json:"starts"`     // sends of the caller
	Arrivals   []int `json:"arrivals"`   // at the order service
	OK         []int `json:"ok"`         // operations that came to an end which their callers believe ok: the goodput
	Queue      []int `json:"queue"`      // requests that wait for a worker when the window ends
	// Beyond counts what took place after the last window that there may be, and stands in none.
	Beyond int `json:"beyond,omitempty"`
	// PeakStarts is the most of Starts in one window, of those that the scenario looks at.
	PeakStarts int `json:"peak_starts"`
	// PeakAfterMs is where the windows begin that it looks at: the crowd that comes first is no news.
	PeakAfterMs int64 `json:"peak_after_ms,omitempty"`
	// Recovery is what became of the goodput, where the scenario says when its disturbance ends.
	Recovery *Recovery `json:"recovery,omitempty"`
}

// Recovery is what becomes of the goodput when what has disturbed it is gone.
type Recovery struct {
	CauseEndsMs int64 `json:"cause_ends_ms"`
	Recovered   bool  `json:"recovered"`
	// AfterMs is how long after the end of the disturbance the goodput is back, to stay: until the
	// operations stop to come, nine operations in each window are believed ok for ten that begin.
	AfterMs int64 `json:"recovered_after_ms,omitempty"`
	// GoodputPerS is how many operations a second are believed ok from the end of the disturbance
	// until the operations stop to come, to a hundredth.
	GoodputPerS float64 `json:"goodput_after_per_s"`
}

// Window is the length of a window in scenario time.
func (s *Series) Window() time.Duration { return FromMillis(s.WindowMs) }

// Count adds one to the window of one of the lists that a moment of scenario time lies in.
func (s *Series) Count(list *[]int, at time.Duration) {
	i := int64(at / s.Window())
	if i >= MaxWindows {
		s.Beyond++
		return
	}
	for int64(len(*list)) <= i {
		*list = append(*list, 0)
	}
	(*list)[i]++
}

// Wait says how many requests wait for a worker from the last moment of which it was told until at:
// so many there are at the end of each window that ends between the two.
func (s *Series) Wait(waiting int, at time.Duration) {
	for end := min(int64(at/s.Window()), MaxWindows); int64(len(s.Queue)) < end; {
		s.Queue = append(s.Queue, waiting)
	}
}

// Fill makes the lists equally long. Where nothing was counted there is 0.
func (s *Series) Fill() {
	lists := []*[]int{&s.Operations, &s.Starts, &s.Arrivals, &s.OK, &s.Queue}
	longest := 0
	for _, l := range lists {
		longest = max(longest, len(*l))
	}
	for _, l := range lists {
		*l = append(*l, make([]int, longest-len(*l))...)
	}
}

// Summary fills in what the lists come to: the peak of the windows that begin at after or later,
// and the recovery from a disturbance that ends at ended, of which 0 is none.
func (s *Series) Summary(after, ended time.Duration) {
	s.PeakAfterMs = Millis(after)
	for _, n := range s.Starts[min(s.from(after), len(s.Starts)):] {
		s.PeakStarts = max(s.PeakStarts, n)
	}
	if ended > 0 {
		s.Recovery = s.recovery(ended)
	}
}

// from is the first window that begins at a moment of scenario time or later.
func (s *Series) from(at time.Duration) int {
	return int(min((at+s.Window()-1)/s.Window(), MaxWindows))
}

// enough is the share of the operations that begin which must end well in a window.
const enough = 0.9

func (s *Series) recovery(ended time.Duration) *Recovery {
	r := &Recovery{CauseEndsMs: Millis(ended)}
	// In the last window in which an operation begins nobody knows what should end well.
	begin, end := s.from(ended), 0
	for i, n := range s.Operations {
		if n > 0 {
			end = i
		}
	}
	if end <= begin {
		return r
	}
	well, healthy := 0, end
	for i := end - 1; i >= begin; i-- {
		well += s.OK[i]
		if i == healthy-1 && float64(s.OK[i]) >= enough*float64(s.Operations[i]) {
			healthy = i
		}
	}
	r.GoodputPerS = math.Round(float64(well)/(time.Duration(end-begin)*s.Window()).Seconds()*100) / 100
	if healthy < end {
		r.Recovered = true
		r.AfterMs = Millis(time.Duration(healthy)*s.Window() - ended)
	}
	return r
}
