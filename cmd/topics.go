package cmd

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"retrylab/internal/suite"
)

// topic is a screen of `retrylab help` that is about no command.
type topic struct {
	name, short string
	begin       string
	rows        [][2]string // what is explained, and how
	end         string      // with the next place to look
}

// helpTopics lists every topic, in the order in which they are shown.
var helpTopics = []topic{
	{
		name: "exit-codes", short: "What the exit codes mean",
		begin: "Exit codes, the worst of all trials (70 before 3, 5, 1, 4, 0):",
		rows: [][2]string{
			{code(suite.ExitHeld), "every expectation and invariant held, or everything was only measured"},
			{code(suite.ExitNotHeld), "ran to the end; at least one did not hold"},
			{code(suite.ExitUsage), "nothing ran: a bad flag, an unknown scenario, an invalid file"},
			{code(suite.ExitEnvironment), "the lab could not be set up, or lost what it stands on"},
			{code(suite.ExitInconclusive), "inconclusive: a fault never fired, or the machine stumbled"},
			{code(suite.ExitTimeLimit), "--time-limit spent; what was complete is reported"},
			{code(suite.ExitInternal), "internal error: a defect of retrylab"},
			{code(suite.ExitInterrupted), "interrupted; what was complete is reported\n(terminated: 143, hung up: 129)"},
			{code(exitPipe), "whoever read standard output left before the end; all else was written"},
		},
		end: "Results are written whatever the code is. --fail-exit-code N replaces 1,\n" +
			"--inconclusive pass makes 4 a success, --require-all makes a skip 3.\n\n" +
			"Next: retrylab help run, docs/output.md",
	},
	{
		name: "scenario-file", short: "What stands in a scenario file",
		begin: "A scenario is one YAML file. What it leaves out has a default. Its keys:",
		rows: [][2]string{
			{"name, title, lesson", "what it is called, and what it teaches"},
			{"needs, clocks, seeds", "without which it shows nothing; seeds to run it with"},
			{"operations, interval", "how many intents, and the time between them"},
			{"schedule, load", "operations that differ, or that come at some rate"},
			{"caller", "method, timeouts, layers (presets of real retries), key"},
			{"hops", "gateways and services on the way, with their own layers"},
			{"server", "processing, replicas, guard, faults, ledgers"},
			{"premises", "what must have taken place for a trial to count"},
			{"variants", "one row each: name, set (path: value), expect, invariant"},
		},
		end: "A path names a value: caller.timeouts.read, caller.layers[0].attempts,\n" +
			"server.guard. set of a variant takes one, and so do --set path=value and\n" +
			"--vary path=a,b,c.\n" +
			"Durations have a unit: 250ms, 5s, 1m30s.\n\n" +
			"  retrylab new mine.yaml             a commented file to start from\n" +
			"  retrylab show read-timeout         a built-in one\n" +
			"  retrylab validate mine.yaml        what is wrong with it, and where\n" +
			"  retrylab run mine.yaml --dry-run   every value, and where it comes from\n\n" +
			"Next: retrylab schema scenario (for your editor), docs/scenario-files.md",
	},
	{
		name: "clocks", short: "The virtual clock and the wall clock",
		begin: "Every duration in a scenario is scenario time. The same code runs on two clocks:",
		rows: [][2]string{
			{"virtual", "the default: time jumps to the next timer, so that 24 seconds take\nmilliseconds; the same seed gives the same bytes"},
			{"wall", "real time over loopback TCP, N scenario seconds in a real one with\n--speed N; a machine that stumbles makes a trial inconclusive"},
		},
		end: "A speed at which events that decide would come closer than 5 ms is refused,\n" +
			"with the largest that is not. A scenario can say that it is for one clock.\n\n" +
			"  retrylab run read-timeout                          milliseconds\n" +
			"  retrylab run read-timeout --clock wall --speed 20  a second or two\n\n" +
			"Next: docs/clocks.md",
	},
	{
		name: "stores", short: "The databases that orders are counted in",
		begin: "Orders are rows in a database, and counted by SQL. --store says in which:",
		rows: [][2]string{
			{"sqlite", "embedded, the default; it lets in one writer at a time"},
			{"postgres", "a private server of the run's own, gone at the end"},
			{"postgres://…", "a server that is there, in a schema of the run's own"},
			{"docker, docker:IMAGE", "PostgreSQL in a container"},
		},
		end: "--redis says where a guard keeps keys beside the database: embedded (the\n" +
			"default), server (a redis-server of the run's own) or redis://…\n\n" +
			"Nothing falls back to another: what cannot be had is exit code 3. A scenario\n" +
			"that needs PostgreSQL is skipped in run --all without it. A password belongs\n" +
			"in the environment (RETRYLAB_STORE, RETRYLAB_REDIS); no output shows it.\n\n" +
			"Next: docs/stores.md, docs/containers.md",
	},
	{
		name: "words", short: "The words of scenario files and results",
		begin: "The same words stand in scenario files, output and documents:",
		rows: [][2]string{
			{"operation", "one thing that a user meant to do, once"},
			{"layer, preset", "one retry loop, layers nest; a real one as data"},
			{"try, attempts", "one pass of a layer; its setting for how many"},
			{"send", "one request started by the innermost layer"},
			{"arrival", "one request that reached the order service"},
			{"effect", "one durable result: an order row, read back by SQL"},
			{"wanted", "the number of effects that the user meant"},
			{"belief", "what the caller ends with: ok, failed or unknown"},
			{"amplification", "arrivals divided by operations"},
			{"duplicate", "an effect above wanted"},
			{"lost", "an operation believed ok, without its effect"},
			{"false failure", "an operation believed failed, though its effect exists"},
			{"late", "an effect after its caller was done"},
			{"guard", "the server's protection against duplicates"},
			{"fault", "a defect with a place: reset at after-commit"},
			{"hop", "a machine between caller and server"},
			{"tenant", "one of several customers, whose keys are its own"},
			{"ledger", "what an order brings about beside itself, counted too"},
			{"look-up", "a question what became of an order; no send"},
			{"reconciliation", "a job that settles later what callers left open"},
			{"often said", "a number that is widely given, and wrong"},
			{"trial", "one configuration of a scenario, run once"},
			{"simulated", "played as events, without machines"},
			{"premise", "what must have taken place for a trial to count"},
			{"settled", "nothing more can happen"},
			{"held, not held", "verdicts: all expectations hold, or one does not"},
			{"inconclusive", "the trial does not count: nobody can say"},
			{"measured", "there was nothing to expect"},
		},
		end: "A time-out after the request has left is unknown, never failed.\n\n" +
			"Next: docs/words.md, retrylab describe read-timeout",
	},
}

func code(n int) string { return fmt.Sprintf("%3d", n) }

// topics are the help topics as commands that do nothing.
func topics() []*cobra.Command {
	var out []*cobra.Command
	for _, t := range helpTopics {
		out = append(out, &cobra.Command{Use: t.name, Short: t.short, Long: t.text()})
	}
	return out
}

// text is the screen of a topic.
func (t topic) text() string {
	wide := 0
	for _, r := range t.rows {
		wide = max(wide, len([]rune(r[0])))
	}
	var b strings.Builder
	b.WriteString(t.begin + "\n\n")
	for _, r := range t.rows {
		indent := "\n" + strings.Repeat(" ", 2+wide+2)
		fmt.Fprintf(&b, "  %s%s  %s\n", r[0], strings.Repeat(" ", wide-len([]rune(r[0]))), strings.ReplaceAll(r[1], "\n", indent))
	}
	b.WriteString("\n" + t.end + "\n")
	return b.String()
}
