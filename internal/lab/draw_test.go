package lab

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"slices"
	"testing"
	"time"
)

// TestDraw holds the hash against that of the standard library, and the parts of an identity apart.
func TestDraw(t *testing.T) {
	t.Parallel()
	for _, identity := range [][]string{nil, {""}, {"a"}, {"op-1/retry.2", "processing"}, {"a", "b"}, {"ab"}} {
		h := fnv.New64a()
		h.Write(binary.LittleEndian.AppendUint64(nil, uint64(7)))
		for _, part := range identity {
			h.Write(append([]byte(part), 0))
		}
		x := h.Sum64()
		x = (x ^ x>>33) * 0xff51afd7ed558ccd
		x = (x ^ x>>33) * 0xc4ceb9fe1a85ec53
		if got, want := Draw(7, identity...), float64((x^x>>33)>>11)/(1<<53); got != want {
			t.Errorf("%q: %v, want %v", identity, got, want)
		}
	}
	if Draw(1, "a", "b") == Draw(1, "ab") || Draw(1, "a") == Draw(2, "a") {
		t.Error("two identities draw the same")
	}
}

// TestOffsets: no two are the same, however many there are, and more flows change none of them.
func TestOffsets(t *testing.T) {
	t.Parallel()
	flows := make([]string, 200_000)
	for i := range flows {
		flows[i] = fmt.Sprint("op-", i)
	}
	few := Offsets(1, flows[:20_000])
	seen := map[time.Duration]bool{}
	for i, d := range few {
		if d < 0 || d >= 150*time.Microsecond || seen[d] {
			t.Errorf("%s begins %s late", flows[i], d)
		}
		seen[d] = true
	}
	all := Offsets(1, flows)
	if !slices.Equal(all[:len(few)], few) {
		t.Error("with fewer flows the first ones have other offsets")
	}
	slices.Sort(all)
	if len(slices.Compact(all)) != len(flows) {
		t.Error("two of many flows begin at one moment")
	}
}
