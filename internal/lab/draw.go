package lab

import (
	"encoding/binary"
	"hash/fnv"
)

// Draw returns a number in [0, 1) that depends on the seed and on the identity of what draws, and
// on nothing else: not on who drew before, so that two configurations of one scenario see the same
// luck.
func Draw(seed int64, identity ...string) float64 {
	h := fnv.New64a()
	var s [8]byte
	binary.LittleEndian.PutUint64(s[:], uint64(seed))
	h.Write(s[:])
	for _, part := range identity {
		h.Write([]byte(part))
		h.Write([]byte{0})
	}
	// FNV mixes its last bytes poorly into the high bits; a finaliser spreads them.
	x := h.Sum64()
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	x ^= x >> 33
	return float64(x>>11) / (1 << 53)
}
