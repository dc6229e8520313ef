package preset

import (
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	"retrylab/caller/policy"
)

// TestMatrix plays every cell of the extract and compares what arrives with what arrived when the
// real layers were run.
func TestMatrix(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/retry-layers.yaml")
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

	covered := map[string]bool{}
	cells := 0
	for _, entry := range facts.Entries {
		covered[entry.ID] = true
		for cell, want := range entry.Matrix {
			cells++
			t.Run(entry.ID+"/"+cell, func(t *testing.T) {
				t.Parallel()
				play, err := Cell(entry.ID, cell)
				if err != nil {
					t.Fatal(err)
				}
				if got := simulate(t, play).arrivals; got != want {
					t.Errorf("%d arrivals, want %d", got, want)
				}
			})
		}
	}
	if cells != 196 {
		t.Errorf("the extract has %d cells, want all 196", cells)
	}
	for _, p := range All {
		if p.Entry != "" && !covered[p.Entry] && (p.Verified == "both" || p.Verified == "live") {
			t.Errorf("preset %s: the extract has no cells of %s", p.Name, p.Entry)
		}
	}
	for _, s := range Stacks {
		if !covered[s.Entry] {
			t.Errorf("stack %s: the extract has no cells of %s", s.Name, s.Entry)
		}
	}
}

// TestOtherCells plays cells that are not in the extract: other methods, numbers and orders of words,
// with the numbers that follow from the facts.
func TestOtherCells(t *testing.T) {
	t.Parallel()
	tests := []struct {
		owner, cell     string
		sends, arrivals int
	}{
		{"feign-retryer", "post_eof_fresh", 5, 5}, // a body is streamed: the JDK cannot resend it
		{"feign-retryer", "put_eof_fresh", 5, 5},
		{"feign-retryer", "delete_rst_fresh", 10, 10},
		{"feign-retryer", "buffered_post_eof", 10, 10},
		{"feign-retryer", "post_eof_F3", 3, 3},
		{"feign-retryer", "F3_eof_get", 6, 6},
		{"feign-retryer", "post_refused", 5, 0},
		{"feign-retryer", "post_never_read_timeout", 1, 1},
		{"feign-retryer", "post_503_retry_after_with_hc5", 10, 10},
		{"feign-retryer", "get_eof_default_client", 10, 10},
		{"openfeign", "post_503_with_hc5", 2, 2},
		{"openfeign", "get_503_default_client", 1, 1},
		{"openfeign", "with_hc5_post_503_retry_after_9_response_timeout_5s", 1, 1},
		{"spring-lb", "get_read_timeout", 2, 2},
		{"spring-lb", "get_503_http_503_S1_N2", 6, 6},
		{"spring-lb", "get_503_S1_N2", 1, 1},
		{"spring-lb", "all_operations_N2_S0_delete_503_http_502_http_503", 3, 3},
		{"spring-lb", "get_read_timeout_S1_N1_without_spring_retry", 1, 1},
		{"spring-lb", "get_first_server_refuses_connection_S1_N1", 3, 1},
		{"stack-feign-lb", "get_eof_F3_S1_N1", 24, 24},
		{"feign-lb", "get_read_timeout_F3_S0_N1", 6, 6},
		{"feign-lb", "get_read_timeout_F3_S0_N1_3_servers", 6, 6},
		{"feign-lb", "get_read_timeout_F3_S1_N1_without_spring_retry", 3, 3},
		{"feign-lb", "post_read_timeout_never_S0_N1_all_operations", 2, 2},
		{"feign-lb", "get_eof_F3_S0_N1_with_hc5", 12, 12},
		{"feign-lb", "get_503_F3_S1_N1", 1, 1},
		{"feign-lb", "get_503_retry_after_1_F3_S1_N1", 3, 3},
		{"httpurlconnection", "delete_rst", 2, 2},
		{"httpurlconnection", "put_eof_retryPost_false", 2, 2},
		{"httpurlconnection", "post_eof_3_idle", 2, 2},
		{"httpurlconnection", "post_refused", 1, 0},
		{"java-net-http", "get_eof_fresh", 2, 2},
		{"java-net-http", "post_refused", 2, 0},
		{"java-net-http", "get_connect_timeout", 1, 0},
		{"httpclient5", "put_rst", 2, 2},
		{"httpclient5", "patch_eof", 1, 1},
		{"httpclient5", "get_read_timeout", 1, 1},
		{"httpclient5", "post_503_chunked_streaming", 1, 1},
		{"httpclient5", "post_503_maxRetries_3", 4, 4},
		{"httpclient5", "post_503_response_timeout_1s", 2, 2},
		{"httpclient5", "post_503_retry_after_0_response_timeout_900ms", 1, 1},
		{"httpclient5", "get_refused", 1, 0},
		{"httpclient45", "delete_eof", 4, 4},
		{"httpclient45", "patch_eof", 1, 1},
		{"httpclient45", "get_eof_retryCount_1", 2, 2},
		{"okhttp", "post_eof_reused_two_addresses", 3, 3},
		{"okhttp", "get_eof_3_addresses", 3, 3},
		{"okhttp", "post_first_server_refuses_connection", 2, 1},
		{"okhttp", "post_408_retry_after_1", 1, 1},
		{"okhttp", "post_408_retry_after_0", 2, 2},
		{"okhttp", "post_503_retry_after_1", 1, 1},
		{"okhttp", "fixed_streaming_post_eof_reused", 1, 1},
		{"go-net-http", "get_eof_4_idle", 5, 5},
		{"go-net-http", "trace_rst_reused", 2, 2},
		{"go-net-http", "reused_4_idle_eof_key_put", 5, 5},
		{"go-net-http", "post_key_chunked_streaming_eof_reused", 1, 1},
		{"urllib3", "get_read_timeout", 4, 4},
		{"urllib3", "post_refused", 4, 0},
		{"urllib3", "post_read_timeout_any_method_Retry_1", 2, 2},
		{"urllib3", "get_500_http_500", 4, 4},
		{"urllib3", "get_413_retry_after_2", 4, 4},
		{"urllib3", "get_500_retry_after_2", 1, 1},
		{"nginx", "get_read_timeout", 2, 2},
		{"nginx", "put_eof_3_servers", 3, 3},
		{"nginx", "get_eof_3_servers_tries_2", 2, 2},
		{"nginx", "get_eof_1_server_2_idle", 3, 3},
		{"nginx", "get_eof_2_servers_2_idle", 2, 2},
		{"nginx", "get_eof_2_servers_tries_1_reused", 2, 2},
		{"nginx", "get_eof_off_reused", 1, 1},
		{"nginx", "post_first_server_refuses_connection_off", 1, 0},
		{"nginx", "chunked_streaming_put_eof", 1, 1},
		{"nginx", "chunked_streaming_put_first_server_refuses_connection", 2, 1},
		{"nginx", "post_eof_first_server_refuses_connection_3_servers", 2, 1},
		{"retry", "post_503", 3, 3},
		{"retry", "post_eof_attempts_2", 2, 2},
		{"retry", "post_404", 1, 1},
	}
	for _, tt := range tests {
		t.Run(tt.owner+"/"+tt.cell, func(t *testing.T) {
			t.Parallel()
			play, err := Cell(tt.owner, tt.cell)
			if err != nil {
				t.Fatal(err)
			}
			run := simulate(t, play)
			if run.sends != tt.sends || run.arrivals != tt.arrivals {
				t.Errorf("%d sends and %d arrivals, want %d and %d", run.sends, run.arrivals, tt.sends, tt.arrivals)
			}
		})
	}
}

// TestDerivedCells plays cells that nobody counted, with what follows from the facts.
func TestDerivedCells(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/derived.yaml")
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
	covered := map[string]bool{}
	for _, c := range cells {
		p, ok := Find(c.Layer)
		if !ok {
			t.Fatalf("there is no preset %s", c.Layer)
		}
		covered[p.Name] = true
		t.Run(c.Layer+"/"+c.Cell, func(t *testing.T) {
			t.Parallel()
			play, err := p.Cell(c.Cell)
			if err != nil {
				t.Fatal(err)
			}
			run := simulate(t, play)
			if run.sends != c.Sends || run.arrivals != c.Arrivals {
				t.Errorf("%d sends and %d arrivals, want %d and %d: %s", run.sends, run.arrivals, c.Sends, c.Arrivals, c.Why)
			}
		})
	}
	for _, p := range All {
		if p.Verified == "source" && !covered[p.Name] && p != Retry {
			t.Errorf("%s was read and not counted: it needs cells here", p.Name)
		}
	}
}

func TestWaits(t *testing.T) {
	t.Parallel()
	ms := func(n ...int) (list []time.Duration) {
		for _, n := range n {
			list = append(list, time.Duration(n)*time.Millisecond)
		}
		return list
	}
	tests := []struct {
		owner, cell string
		want        []time.Duration
	}{
		{"feign-retryer", "post_read_timeout", ms(150, 225, 337, 506)},
		{"feign-retryer", "post_read_timeout_F7", ms(150, 225, 337, 506, 759, 1000)},
		{"feign-retryer", "post_429_retry_after_7", ms(1000, 1000, 1000, 1000)},
		{"feign-retryer", "post_429_retry_after_0", ms(0, 0, 0, 0)},
		{"feign-lb", "get_read_timeout_F3_S1_N1", ms(0, 0, 0, 150, 0, 0, 0, 225, 0, 0, 0)},
		{"httpclient5", "post_503", ms(1000)},
		{"httpclient5", "post_503_retry_after_2", ms(2000)},
		{"httpclient5", "post_503_retry_after_0", ms(1000)},
		{"httpclient5", "get_eof", ms(0)},
		{"urllib3", "get_eof", ms(0, 0, 0)},
		{"urllib3", "get_eof_bf_0_2", ms(0, 400, 800)},
		{"urllib3", "get_eof_bf_30_Retry_4", ms(0, 60_000, 120_000, 120_000)},
		{"urllib3", "get_429_retry_after_30000", ms(21_600_000, 21_600_000, 21_600_000)},
		{"urllib3", "get_429_retry_after_0_bf_1", ms(0, 2000, 4000)},

		// The draw of a simulated wait is the middle of what it may be.
		{"go-retryablehttp", "post_eof_RetryMax_6", ms(1000, 2000, 4000, 8000, 16_000, 30_000)},
		{"go-retryablehttp", "post_503_retry_after_90", ms(90_000, 90_000, 90_000, 90_000)},
		{"go-retryablehttp", "post_500_retry_after_90", ms(1000, 2000, 4000, 8000)},
		{"failsafe-go", "post_503_retry_after_1", ms(1000, 1000)},
		{"axios-retry", "get_503", ms(0, 0, 0)},
		{"axios-retry", "get_503_exponential_delay", ms(220, 440, 880)},
		{"axios-retry", "get_503_exponential_delay_retry_after_1", ms(1000, 1000, 1000)},
		{"undici-retry", "get_503_maxRetries_8", ms(500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000)},
		{"undici-retry", "get_503_maxRetries_1_retry_after_60", ms(30_000)},
		{"got", "get_eof", ms(1050, 2050)},
		{"got", "get_503_retry_after_7", ms(7000, 7000)},
		{"curl", "post_503_retry_3", ms(1000, 2000, 4000)},
		{"curl", "post_503_retry_3_retry_after_2", ms(2000, 2000, 4000)},
		{"curl", "post_503_retry_2_retry_delay_5", ms(5000, 5000)},
		{"haproxy", "get_refused", ms(1000, 1000, 1000)},
		{"haproxy", "get_connect_timeout", ms(0, 0, 0)},
		{"haproxy", "get_503_retry_on_503", ms(0, 0, 0)},
		{"haproxy", "post_first_server_refuses_connection_redispatch", ms(0)},
		{"caddy", "get_eof_try_duration_1s_lb_retries_2", ms(250, 250)},
		{"caddy", "get_eof_lb_retries_2", ms(0, 0)},
		{"traefik", "get_refused_attempts_3", ms(0, 0)},
		{"resilience4j", "get_eof", ms(500, 500)},
		{"spring-retry", "get_eof", ms(1000, 1000)},
		{"spring7-retry", "get_eof", ms(1000, 1000, 1000)},
		{"polly", "get_eof", ms(2000, 2000, 2000)},
		{"aws-sdk-go", "get_eof_max_attempts_6", ms(1000, 2000, 4000, 8000, 20_000)},
		{"aws-sdk-go-2026", "get_503", ms(25, 50)},
		{"aws-sdk-go-2026", "get_429", ms(500, 1000)},
		{"botocore", "get_503", ms(500, 1000, 2000, 4000)},
		{"stripe-node", "post_eof_max_5", ms(500, 750, 1500, 3000, 3750)},
	}
	for _, tt := range tests {
		t.Run(tt.owner+"/"+tt.cell, func(t *testing.T) {
			t.Parallel()
			play, err := Cell(tt.owner, tt.cell)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, simulate(t, play).waits); diff != "" {
				t.Errorf("waits (-want +got):\n%s", diff)
			}
		})
	}
}

func TestInstances(t *testing.T) {
	t.Parallel()
	tests := []struct {
		owner, cell string
		want        []int
	}{
		{"spring-lb", "get_read_timeout_S1_N1", []int{0, 0, 1, 1}},
		{"spring-lb", "get_read_timeout_S2_N1", []int{0, 0, 0, 1, 1, 1}},
		{"spring-lb", "get_read_timeout_S0_N2_2_servers", []int{0, 1, 0}},
		{"spring-lb", "get_read_timeout_S0_N2_1_server", []int{0, 0, 0}},
		{"nginx", "get_read_timeout_3_servers", []int{0, 1, 2}},
	}
	for _, tt := range tests {
		t.Run(tt.owner+"/"+tt.cell, func(t *testing.T) {
			t.Parallel()
			play, err := Cell(tt.owner, tt.cell)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, simulate(t, play).instances); diff != "" {
				t.Errorf("instances (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPlay(t *testing.T) {
	t.Parallel()
	tests := []struct {
		owner, cell string
		want        Play
	}{
		{"httpclient5", "post_503_retry_after_9_response_timeout_5s", Play{
			Method: "POST", Body: policy.Buffered, Status: 503, RetryAfter: "9", Servers: 1, Addresses: 1,
			ReadTimeout: 5 * time.Second,
			Layers:      []policy.Settings{{Preset: "httpclient5"}},
		}},
		{"httpclient5", "post_503_response_timeout_below_1s", Play{
			Method: "POST", Body: policy.Buffered, Status: 503, Servers: 1, Addresses: 1,
			ReadTimeout: 500 * time.Millisecond,
			Layers:      []policy.Settings{{Preset: "httpclient5"}},
		}},
		{"go-net-http", "post_key_eof_reused_2_idle", Play{
			Method: "POST", Key: true, Body: policy.Buffered, Trigger: policy.EOF, Reused: true, Idle: 2, Servers: 1, Addresses: 1,
			Layers: []policy.Settings{{Preset: "go-net-http", Idle: new(2)}},
		}},
		{"stack-feign-lb", "post_read_timeout_F3_S1_N2_all_operations", Play{
			Method: "POST", Body: policy.Fixed, Trigger: policy.ReadTimeout, Servers: 3, Addresses: 1,
			ReadTimeout: DefaultReadTimeout,
			Layers: []policy.Settings{
				{Preset: "feign-retryer", Attempts: new(3)},
				{Preset: "spring-lb", Same: new(1), Next: new(2), AllOperations: new(true)},
				{Preset: "httpurlconnection"},
			},
		}},
		{"openfeign", "post_429_with_hc5", Play{
			Method: "POST", Body: policy.Buffered, Status: 429, Servers: 1, Addresses: 1,
			Layers: []policy.Settings{{Preset: "openfeign"}, {Preset: "httpclient5"}},
		}},
		{"nginx", "get_read_timeout_2_servers_caller_gave_up_first", Play{
			Method: "GET", Body: policy.NoBody, Trigger: policy.ReadTimeout, Servers: 2, Addresses: 1,
			CallerGivesUpFirst: true, ReadTimeout: DefaultReadTimeout,
			Hop: &Hop{Layer: policy.Settings{Preset: "nginx"}},
		}},
		{"nginx", "post_first_server_refuses_connection", Play{
			Method: "POST", Body: policy.Buffered, Status: 200, Servers: 2, Addresses: 1, FirstRefuses: true,
			Hop: &Hop{Layer: policy.Settings{Preset: "nginx"}},
		}},
		{"urllib3", "post_eof_Retry_3_bf_0_2_any_method", Play{
			Method: "POST", Body: policy.Buffered, Trigger: policy.EOF, Servers: 1, Addresses: 1,
			Layers: []policy.Settings{{
				Preset: "urllib3", Attempts: new(4), Methods: []string{"any"},
				Backoff: &policy.Backoff{Initial: 200 * time.Millisecond},
			}},
		}},
		{"okhttp", "post_first_server_refuses_connection", Play{
			Method: "POST", Body: policy.Buffered, Status: 200, Servers: 1, Addresses: 2, FirstRefuses: true,
			Layers: []policy.Settings{{Preset: "okhttp"}},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.owner+"/"+tt.cell, func(t *testing.T) {
			t.Parallel()
			got, err := Cell(tt.owner, tt.cell)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("play (-want +got):\n%s", diff)
			}
		})
	}
}

// TestOrderOfWords shuffles the words of long names: the play must stay the same.
func TestOrderOfWords(t *testing.T) {
	t.Parallel()
	tests := []struct {
		owner string
		words []string
	}{
		{"feign-lb", []string{"post", "read_timeout", "F3", "S1", "N2", "all_operations", "key", "chunked_streaming", "4_servers"}},
		{"urllib3", []string{"post", "eof", "Retry_3", "bf_0_2", "any_method", "empty_body", "two_addresses"}},
		{"nginx", []string{"get", "503", "retry_after_9", "http_503", "http_502", "tries_4", "5_servers", "2_idle", "reused_keepalive"}},
		{"httpclient5", []string{"put", "429", "retry_after_2", "response_timeout_5s", "maxRetries_2"}},
	}
	for _, tt := range tests {
		want, err := Cell(tt.owner, strings.Join(tt.words, "_"))
		if err != nil {
			t.Fatal(err)
		}
		rnd := rand.New(rand.NewPCG(1, 2))
		for range 50 {
			rnd.Shuffle(len(tt.words), func(i, j int) { tt.words[i], tt.words[j] = tt.words[j], tt.words[i] })
			name := strings.Join(tt.words, "_")
			got, err := Cell(tt.owner, name)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range []*Play{&want, &got} {
				if s.Hop != nil {
					slices.Sort(s.Hop.Layer.Statuses)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("%s (-want +got):\n%s", name, diff)
			}
		}
	}
}

func TestCellErrors(t *testing.T) {
	t.Parallel()
	tests := []struct{ owner, cell, want string }{
		{"nobody", "get_eof", `there is no preset or stack "nobody"`},
		{"okhttp", "", `"" is not understood; the words are get,`},
		{"okhttp", "get", "nothing happens"},
		{"okhttp", "eof_fresh", "no method"},
		{"okhttp", "get_eof_sideways", `"sideways" is not understood`},
		{"okhttp", "get_eof_S1", "retry_after_#"},   // the words are listed
		{"okhttp", "get_eof_S1", "caller_gave_up_"}, // to the last one
		{"okhttp", "get_eof_F3", `"F3" is not understood`},
		{"okhttp", "get_post_eof", "post: method: said twice"},
		{"okhttp", "get_eof_503", "503: trigger: said twice"},
		{"okhttp", "get_eof_reused_fresh", "connection: said twice"},
		{"okhttp", "get_eof_fresh_2_idle", "contradict"},
		{"okhttp", "get_eof_reused_0_idle", "without an idle connection"},
		{"okhttp", "get_700", "700 is not a status"},
		{"okhttp", "get_eof_0_servers", "0 servers"},
		{"okhttp", "get_eof_0_addresses", "without addresses"},
		{"okhttp", "get_eof_99999_idle", "above 1000"},
		{"okhttp", "get_eof_retry_after_1", "needs a status"},
		{"okhttp", "get_eof_response_timeout_-5s", "not a time above zero"},
		{"okhttp", "get_eof_off_off", "said twice"},
		{"feign-lb", "get_eof_F0", "attempts: 0 is not between 1 and 1000"},
		{"feign-lb", "get_eof_F3_F5", "attempts of feign-retryer: said twice"},
		{"feign-lb", "get_eof_F3_never", "has settings already"},
		{"feign-lb", "get_eof_never_F3", "there is no layer feign-retryer here"},
		{"feign-lb", "get_eof_N31", "next: 31 is not between 0 and 30"},
		{"feign-lb", "get_eof_with_hc5_default_client", "client: said twice"},
		{"urllib3", "get_eof_bf_1_bf_2", "backoff of urllib3: said twice"},
		{"spring-lb", "get_503_http_200", "not a status from 300 to 599"},
	}
	for _, tt := range tests {
		_, err := Cell(tt.owner, tt.cell)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Cell(%q, %q): error %v, want one that says %q", tt.owner, tt.cell, err, tt.want)
		}
	}
}

// TestWordsHaveDocs also makes sure that no two words of one vocabulary have the same form.
func TestWordsHaveDocs(t *testing.T) {
	t.Parallel()
	check := func(owner string, words []word) {
		seen := map[string]bool{}
		for _, w := range slices.Concat(common, words) {
			if w.doc == "" || seen[w.form] {
				t.Errorf("%s: word %q: no doc, or there twice", owner, w.form)
			}
			seen[w.form] = true
		}
	}
	for _, p := range All {
		check(p.Name, p.vocabulary())
	}
	for _, s := range Stacks {
		check(s.Name, s.words)
	}
}

func FuzzCell(f *testing.F) {
	f.Add("feign-lb", "post_read_timeout_F3_S1_N1_all_operations")
	f.Add("urllib3", "post_eof_Retry_3_bf_0_2_any_method")
	f.Add("nginx", "get_eof_1_server_reused_keepalive")
	f.Add("httpclient5", "post_503_response_timeout_below_1s")
	f.Fuzz(func(t *testing.T, owner, cell string) {
		play, err := Cell(owner, cell)
		if err != nil {
			return
		}
		if play.Method == "" || play.Body == "" || (play.Trigger == policy.NoFailure) == (play.Status == 0) {
			t.Errorf("Cell(%q, %q) is half a play: %+v", owner, cell, play)
		}
	})
}

// TestCellWords makes sure that the words that are listed are those that are read.
func TestCellWords(t *testing.T) {
	t.Parallel()
	lists := map[string][]string{}
	for _, p := range All {
		lists[p.Name] = p.CellWords()
	}
	for _, s := range Stacks {
		lists[s.Name] = s.CellWords()
	}
	fill := strings.NewReplacer("#", "3", "@", "5s")
	for owner, words := range lists {
		for _, form := range words {
			if _, err := Cell(owner, fill.Replace(form)); err != nil && strings.Contains(err.Error(), "not understood") {
				t.Errorf("%s lists %s: %v", owner, form, err)
			}
		}
	}
}
