package scenarios_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"retrylab/scenarios"
)

// TestAccept: what is accepted takes the place of what was expected, and everything else stays byte for byte.
func TestAccept(t *testing.T) {
	t.Parallel()
	change := func(id string, values ...string) scenarios.Accepted {
		a := scenarios.Accepted{ID: id}
		for i := 0; i < len(values); i += 2 {
			a.Values = append(a.Values, scenarios.Change{Path: values[i], Value: values[i+1]})
		}
		return a
	}
	for _, c := range []struct {
		name, before, after string
		list                []scenarios.Accepted
	}{
		{
			"values and comments",
			"name: mine # 注文\nvariants:\n  - name: one\n    expect:\n      sends: 1   # once\n      starts: [0s,\n        6s] # two\n      belief: ok\n\n  # the other\n  - name: two\n    expect: {sends: 1, belief: ok}\n",
			"name: mine # 注文\nvariants:\n  - name: one\n    expect:\n      sends: 3   # once\n      starts: [0s] # two\n      belief: ok\n\n  # the other\n  - name: two\n    expect: {sends: 2, belief: unknown}\n",
			[]scenarios.Accepted{change("one", "sends", "3", "starts", "[0s]"), change("two", "belief", "unknown", "sends", "2")},
		},
		{
			"a key takes the place of another",
			"name: mine\nexpect:\n  belief: ok # all\n  answers:\n    201: 1\n    503: 2\n  sends: 1\n",
			"name: mine\nexpect:\n  answers: {201: 3}\n  sends: 1\n  beliefs: {ok: 1, failed: 1, unknown: 0}\n",
			[]scenarios.Accepted{change("as-written", "belief", "", "beliefs", "{ok: 1, failed: 1, unknown: 0}", "answers", "{201: 3}")},
		},
		{
			"between braces",
			"name: mine\nexpect: {belief: ok, sends: 1}\n",
			"name: mine\nexpect: {sends: 1, beliefs: {ok: 1, failed: 0, unknown: 0}}\n",
			[]scenarios.Accepted{change("as-written", "belief", "", "beliefs", "{ok: 1, failed: 0, unknown: 0}")},
		},
		{
			"nothing was expected",
			"name: mine\noperations: 1\nserver:\n  processing: 1s\n",
			"name: mine\noperations: 1\nserver:\n  processing: 1s\nexpect:\n  sends: 1\n  belief: ok\n",
			[]scenarios.Accepted{change("as-written", "sends", "1", "belief", "ok")},
		},
		{
			"nothing was expected of a row",
			"name: mine\nvariants:\n- name: one\n  set: {operations: 1}\n- name: two\n",
			"name: mine\nvariants:\n- name: one\n  set: {operations: 1}\n  expect:\n    sends: 1\n- name: two\n  expect:\n    sends: 2\n",
			[]scenarios.Accepted{change("one", "sends", "1"), change("two", "sends", "2")},
		},
		{
			"no line break at the end",
			"name: mine\nexpect:\n  starts:\n  - 0s\n  - 6s\n  sends: 2",
			"name: mine\nexpect:\n  starts: [0s]\n  sends: 1",
			[]scenarios.Accepted{change("as-written", "sends", "1", "starts", "[0s]")},
		},
	} {
		got, err := parse(t, c.before).Accept(c.list)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if diff := cmp.Diff(c.after, string(got)); diff != "" {
			t.Errorf("%s: -want +got\n%s", c.name, diff)
		}
	}
	if _, err := parse(t, "name: mine\nvariants: [{name: one}]\n").Accept([]scenarios.Accepted{change("one", "sends", "1")}); err == nil {
		t.Error("a row between braces gets an expect of its own, and where?")
	}
}
