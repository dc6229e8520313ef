package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"retrylab/internal/engine"
	"retrylab/internal/lab"
	"retrylab/internal/serve"
	"retrylab/internal/storage"
	"retrylab/internal/suite"
	"retrylab/internal/vtime"
	"retrylab/scenarios"
	"retrylab/slowserver/fault"
	"retrylab/slowserver/store"
	"retrylab/slowserver/store/redis"
)

// serveFlags are the flags of serve.
type serveFlags struct {
	listen, name string
	store, redis string
	set          []string
	quiet        bool
}

// servedByDefault is the service that is served when no scenario is named: slow enough for a
// second terminal, and with a guard for whoever sends a key.
const servedByDefault = `name: serve
server:
  processing: 2s
  guard: unique-index
`

// servedSchema is where replicas that share a PostgreSQL keep their orders.
const servedSchema = "retrylab_serve"

func (a *app) serveCommand() *cobra.Command {
	var f serveFlags
	c := &cobra.Command{
		Use:   "serve [NAME:ID|FILE]",
		Short: "Run the order service for curl, a client of yours or a container",
		Long: "Run one replica of the order service, in real time, until it is stopped. Without\n" +
			"an argument it takes 2 s for an order and keeps a unique index of the keys; with\n" +
			"one it is the server of that scenario's configuration, the first without an ID.\n\n" +
			"  POST /orders        places an order; an Idempotency-Key names the intent\n" +
			"  GET  /results/KEY   what became of a key: processing, done or failed\n" +
			"  GET  /references/NUMBER\n" +
			"                      how many orders there are with a business number\n" +
			"  GET  /stats         arrivals, requests at work, orders by SQL, keys with several\n" +
			"  POST /release       ends the slow work of every request at once\n" +
			"  GET  /healthz       whether it is there\n\n" +
			"A key that comes again with another body is answered 409.",
		Example: "  retrylab serve\n" +
			"  retrylab serve --set server.processing=12s --set server.guard=none\n" +
			"  retrylab serve unique-index:check-then-insert --listen 127.0.0.1:9000",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("for example: retrylab serve "+args[0], "%s takes one scenario", cmd.CommandPath())
			}
			return nil
		},
		ValidArgsFunction: a.completeConfigurations,
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := a.defaults(cmd, false); err != nil {
				return err
			}
			a.warnOfSecrets(cmd.Flags())
			return a.serve(cmd.Context(), args, f)
		},
	}
	fl := c.Flags()
	fl.StringVar(&f.listen, "listen", "127.0.0.1:8080", "`address` to listen on, host:port; port 0 is any that is free")
	fl.StringVar(&f.name, "name", "order-1", "`name` of this replica")
	fl.StringVar(&f.store, "store", storage.SQLite, "`database` of the orders: "+strings.Join(storage.Choices, ", "))
	fl.StringVar(&f.redis, "redis", "", "`place` of keys beside it, for a guard that asks for one: "+strings.Join(storage.RedisChoices, ", "))
	fl.StringArrayVar(&f.set, "set", nil, "override a value of the scenario, server.* above all: `path=value` (repeatable)")
	fl.BoolVar(&f.quiet, "quiet", false, "write no line for each request, and no hints")
	c.RegisterFlagCompletionFunc("set", a.completeSetting("server.", false))
	c.RegisterFlagCompletionFunc("store", completeStore)
	c.RegisterFlagCompletionFunc("redis", completeRedis)
	for _, flag := range []string{"listen", "name"} {
		c.RegisterFlagCompletionFunc(flag, cobra.NoFileCompletions)
	}
	return c
}

// machineName is what a replica may be called, as a scenario's machines are.
var machineName = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

func (a *app) serve(ctx context.Context, args []string, f serveFlags) error {
	trial, err := a.served(args, f.set)
	if err != nil {
		return err
	}
	if err := f.check(trial); err != nil {
		return err
	}
	o := serve.Options{
		Listen: f.listen, Name: f.name, Service: engine.ServiceConfig(trial.Setup),
		Open: func(ctx context.Context) (store.Database, error) {
			return storage.Open(ctx, f.store, storage.Options{Jobs: 1, Schema: servedSchema})
		},
		Opened: a.interrupts.onLeave,
		Ready: func(address net.Addr, info lab.Store) {
			say(a.stdout, "%s listens on http://%s, %s %s", f.name, address, info.Engine, info.Version)
			if !f.quiet {
				a.suggest(trial, address)
			}
		},
	}
	if trial.Setup.NeedsKeys() {
		o.Keys = func(ctx context.Context, clock *vtime.Clock) (store.Keys, error) {
			return f.openKeys(ctx, trial.Setup, clock)
		}
	}
	if !f.quiet {
		o.Log = a.stderr
	}
	a.interrupts.announce("stopping; requests at work have a few seconds. Once more leaves at once.")
	a.interrupts.running.Store(true)
	switch err := serve.Run(ctx, o); {
	case errors.Is(err, syscall.EADDRINUSE):
		return &suite.EnvironmentError{Err: fmt.Errorf("%w\n  another port: --listen 127.0.0.1:0 takes any that is free", err)}
	case err != nil && ctx.Err() == nil:
		return &suite.EnvironmentError{Err: err}
	}
	return nil
}

// served returns the configuration whose server is served.
func (a *app) served(args, set []string) (scenarios.Trial, error) {
	var s *scenarios.Scenario
	var id string
	var err error
	if len(args) == 0 {
		s, err = scenarios.Parse("serve", []byte(servedByDefault))
	} else {
		s, id, err = a.readScenario(args[0])
	}
	if err != nil {
		return scenarios.Trial{}, err
	}
	trials, err := s.Plan(scenarios.Options{Set: set, Seed: 1, Only: id})
	if err != nil {
		return scenarios.Trial{}, err
	}
	return trials[0], nil
}

// serveKeys lists the flags of serve alone that a variable can give.
var serveKeys = []defaultKey{
	{flag: "listen", check: checkListen},
	{flag: "name", check: checkName},
}

func checkListen(value string) (why, want string) {
	_, port, err := net.SplitHostPort(value)
	if err != nil {
		return "", "host:port, for example 127.0.0.1:8080"
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Sprintf("%q is no port", port), "a number from 0 to 65535"
	}
	return "", ""
}

func checkName(value string) (why, want string) {
	if machineName.MatchString(value) && len(value) <= 40 {
		return "", ""
	}
	return "", "lower-case letters, digits and hyphens, at most 40"
}

// check finds what cannot be served.
func (f serveFlags) check(trial scenarios.Trial) error {
	if i := slices.IndexFunc(trial.Setup.Server.Faults, func(f fault.Settings) bool { return f.At == fault.AtConnect }); i >= 0 {
		return usagef("let nothing listen: stop the service", "the fault %s cannot be served: it comes before there is a connection", trial.Setup.Server.Faults[i].Name())
	}
	if engine, why := trial.Setup.NeedsEngine(); engine != "" {
		if chosen, _ := storage.Engine(f.store); chosen != engine {
			return &suite.EnvironmentError{Err: fmt.Errorf("%s:%s needs --store %s: %s", trial.Scenario, trial.ID, engine, why)}
		}
	}
	return nil
}

// openKeys opens the keys beside the database. On a Redis that is there already the replicas share
// them.
func (f serveFlags) openKeys(ctx context.Context, setup scenarios.Setup, clock *vtime.Clock) (store.Keys, error) {
	source, err := storage.OpenKeys(ctx, cmp.Or(f.redis, storage.Embedded))
	if err != nil {
		return nil, err
	}
	keys, err := source.Open(ctx, redis.Options{
		Now: clock.Now, Retries: setup.Server.Guard.Retries, Replica: setup.NeedsReplica(), Prefix: servedSchema + ":",
	})
	if err != nil {
		return nil, err
	}
	return keys, nil
}

// suggest shows what can be tried, in words that can be pasted into a second terminal.
func (a *app) suggest(trial scenarios.Trial, address net.Addr) {
	host, port, _ := net.SplitHostPort(address.String())
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	base := "http://" + net.JoinHostPort(host, port)
	server := trial.Setup.Server
	kind := server.Guard.Kind
	if kind == "" {
		kind = "none"
	}
	lines := []string{
		fmt.Sprintf("%s of work for an order, guard %s. Try:", server.Processing, kind),
		fmt.Sprintf("  curl -i %s/orders -H 'Idempotency-Key: k1' -d '{\"item\":\"book\",\"amount_minor\":4999}'", base),
		fmt.Sprintf("  curl -i %s/results/k1", base),
		fmt.Sprintf("  curl -s %s/stats", base),
	}
	io.WriteString(a.stderr, plain(strings.Join(lines, "\n"))+"\n")
}
