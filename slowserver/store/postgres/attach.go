package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"retrylab/internal/vtime"
	"retrylab/slowserver/store"
)

// address is how another process finds a trial's tables. It holds the connection string, password
// and all, and what the environment has added to it: it goes through a pipe to a process of ours,
// and nowhere else.
type address struct {
	DSN      string `json:"dsn"`
	Host     string `json:"host"`
	Port     uint16 `json:"port"`
	User     string `json:"user"`
	Password string `json:"password"`
	Database string `json:"database"`
	Private  bool   `json:"private"`
	Schema   string `json:"schema"`
	Suffix   string `json:"suffix"`
	Detects  bool   `json:"detects"`
}

// Address says how another process gets at the store.
func (s *Store) Address() string {
	d, c := s.database, s.database.config
	a, _ := json.Marshal(address{
		DSN: d.options.DSN, Host: c.Host, Port: c.Port, User: c.User, Password: c.Password, Database: c.Database,
		Private: d.options.Private, Schema: d.schema, Suffix: s.seat.suffix, Detects: d.detects,
	})
	return "postgres:" + string(a)
}

// Attach opens a store whose tables another process has made, and which stay. It is for the wall
// clock: in a bubble there is one process.
func Attach(where string, o store.Options) (*Store, error) {
	var a address
	if err := json.Unmarshal([]byte(where), &a); err != nil {
		return nil, fmt.Errorf("read the address of a store: %w", err)
	}
	options := Options{DSN: a.DSN, Private: a.Private, Schema: a.Schema}
	config, err := parse(options)
	if err != nil {
		return nil, err
	}
	config.Host, config.Port, config.User, config.Password, config.Database = a.Host, a.Port, a.User, a.Password, a.Database
	d := &Database{config: config, options: options, schema: a.Schema, detects: a.Detects, patience: 20 * time.Second}
	ctx, cancel := context.WithTimeout(context.Background(), connectTimeout)
	defer cancel()
	if d.monitor, err = d.newMonitor(ctx); err != nil {
		return nil, err
	}
	d.outside = vtime.NewOutside()
	set := &tableSet{database: d, suffix: a.Suffix, tables: tablesIn(a.Schema, a.Suffix)}
	s := set.open(o)
	s.attached = true
	return s, nil
}

// Announce tells the store that another process has committed.
func (s *Store) Announce() { s.announce() }
