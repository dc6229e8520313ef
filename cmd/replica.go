package cmd

import (
	"os"

	"github.com/spf13/cobra"

	"retrylab/internal/engine"
	"retrylab/internal/storage"
)

// replicaName is the command that a replica's process runs, for nobody but the tool itself.
const replicaName = "replica"

// replicaCommand is the life of a replica that is a process of its own.
func (a *app) replicaCommand() *cobra.Command {
	return &cobra.Command{
		Use:    replicaName,
		Short:  "Be a replica of a trial (retrylab starts it itself)",
		Hidden: true,
		Args:   noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			files := map[uintptr]*os.File{}
			for _, fd := range []uintptr{engine.SocketFile, engine.NotesFile, engine.OrdersFile} {
				f := os.NewFile(fd, "")
				if _, err := f.Stat(); err != nil {
					return usagef("`retrylab serve` runs the order service for people", "%s is started by a run itself", cmd.CommandPath())
				}
				files[fd] = f
			}
			return engine.RunReplica(cmd.Context(), files[engine.SocketFile], files[engine.NotesFile], files[engine.OrdersFile], storage.Attach)
		},
	}
}

// replicaProcess is the command that runs replicaCommand, nil where this program cannot be found.
func replicaProcess() []string {
	path, err := os.Executable()
	if err != nil {
		return nil
	}
	return []string{path, replicaName}
}
