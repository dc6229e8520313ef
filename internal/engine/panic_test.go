package engine

import (
	"context"
	"net"
	"strings"
	"testing"

	"retrylab/internal/lab"
	"retrylab/internal/storage"
	"retrylab/internal/vtime"
	"retrylab/scenarios"
)

// panicky is a network whose n-th connection is a defect.
type panicky struct {
	vtime.Network
	left int
}

func (p *panicky) Dial(ctx context.Context, host, id string) (net.Conn, error) {
	if p.left--; p.left == 0 {
		panic("a defect in a caller")
	}
	return p.Network.Dial(ctx, host, id)
}

// TestPanic lets a goroutine of a trial panic: the trial is broken, as a defect of the lab, and
// nothing else is.
func TestPanic(t *testing.T) {
	t.Parallel()
	database, err := storage.Open(t.Context(), storage.SQLite, storage.Options{Jobs: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer database.Close()
	l := New(database, Virtual, 1)
	s, err := scenarios.Builtin("read-timeout")
	if err != nil {
		t.Fatal(err)
	}
	trials, err := s.Plan(scenarios.Options{Seed: 1, Only: "feign-retryer-3"})
	if err != nil {
		t.Fatal(err)
	}
	p, err := l.place(t.Context(), trials[0])
	if err != nil {
		t.Fatal(err)
	}
	var obs lab.Observation
	if err := vtime.Bubble(func() {
		clock := vtime.NewVirtual(calendar(""))
		network := &panicky{Network: vtime.NewMemory(clock, 1), left: 2}
		obs = l.trial(t.Context(), trials[0], world{clock: clock, network: network, place: p, horizon: lab.Horizon})
	}); err != nil {
		t.Fatalf("the bubble did not end well: %v", err)
	}
	if !obs.Defect || !strings.Contains(obs.Broken, "a defect in a caller") {
		t.Errorf("broken %q, defect %v; want the panic, as a defect", obs.Broken, obs.Defect)
	}
	if again := l.Run(t.Context(), trials[0]); again.Broken != "" {
		t.Errorf("the next trial is broken as well: %s", again.Broken)
	}
}
