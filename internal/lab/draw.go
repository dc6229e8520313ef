package lab

import "time"

// The parameters of FNV-1a with 64 bits.
const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

// Draw returns a number in [0, 1) that depends on the seed and on the identity of what draws, and
// on nothing else: not on who drew before, so that two configurations of one scenario see the same
// luck.
func Draw(seed int64, identity ...string) float64 {
	x := uint64(fnvOffset)
	for i := range 8 {
		x = (x ^ uint64(seed)>>(8*i)&0xff) * fnvPrime
	}
	for _, part := range identity {
		for i := range len(part) {
			x = (x ^ uint64(part[i])) * fnvPrime
		}
		x *= fnvPrime // a byte of zero ends each part
	}
	// FNV mixes its last bytes poorly into the high bits; a finaliser spreads them.
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	x ^= x >> 33
	return float64(x>>11) / (1 << 53)
}

// offsets is the time within which flows start late.
const offsets = 100 * time.Microsecond

// Offsets are the moments, below a tenth of a millisecond where there are not too many, by which
// flows start late, so that no two of them ever act in one instant.
func Offsets(seed int64, flows []string) []time.Duration {
	out := make([]time.Duration, len(flows))
	// For a moment that is taken: a later one from which to look for one that is not; else 0.
	next := make([]int32, int(offsets)+len(flows)+1)
	for i, flow := range flows {
		first := int32(Draw(seed, flow, "offset") * float64(offsets))
		d := first
		for next[d] > 0 {
			d = next[d]
		}
		out[i], next[d] = time.Duration(d), d+1
		for first != d { // the way gets shorter for those to come
			first, next[first] = next[first], d+1
		}
	}
	return out
}
