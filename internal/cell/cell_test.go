package cell

import (
	"os"
	"testing"

	"github.com/goccy/go-yaml"

	"retrylab/caller/preset"
)

// TestMatrix plays every cell of the facts on sockets and compares the requests that arrive with
// those that arrived when the real layers were run.
func TestMatrix(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../caller/preset/testdata/retry-layers.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var facts struct {
		Entries []struct {
			ID     string
			Matrix map[string]int
		}
	}
	if err := yaml.UnmarshalWithOptions(data, &facts, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	cells := 0
	for _, entry := range facts.Entries {
		for name, want := range entry.Matrix {
			cells++
			t.Run(entry.ID+"/"+name, func(t *testing.T) {
				t.Parallel()
				expect(t, entry.ID, name, want)
			})
		}
	}
	if cells < 100 {
		t.Errorf("only %d cells were played", cells)
	}
}

// TestDerived plays the cells that follow from the facts and were not counted.
func TestDerived(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../caller/preset/testdata/derived.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var cells []struct {
		Layer, Cell, Why string
		Sends, Arrivals  int
	}
	if err := yaml.UnmarshalWithOptions(data, &cells, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	for _, c := range cells {
		t.Run(c.Layer+"/"+c.Cell, func(t *testing.T) {
			t.Parallel()
			expect(t, c.Layer, c.Cell, c.Arrivals)
		})
	}
}

// expect plays a cell and compares the requests that reach the server.
func expect(t *testing.T, layer, name string, want int) {
	t.Helper()
	play, err := preset.Cell(layer, name)
	if err != nil {
		t.Fatal(err)
	}
	trial, err := Trial("cell", play)
	if err != nil {
		t.Fatal(err)
	}
	obs, err := Play(t.Context(), trial)
	if err != nil {
		t.Fatal(err)
	}
	if got := Requests(obs); got != want {
		t.Errorf("%d requests reached the server, want %d", got, want)
		for _, e := range obs.Events {
			t.Log(e)
		}
	}
}
