package main

import (
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/cli"
)

// maxGrace is the default of --grace for a long TTL.
const maxGrace = 10 * time.Second

func runCommand(store *site) *cobra.Command {
	j := &job{store: store}
	cmd := &cobra.Command{
		Use:   "run [flags] KEY -- COMMAND [ARG...]",
		Short: "Run a command while holding a lock",
		Long: `Run waits for the lock on KEY, for a minute unless --wait says more or less. It
runs COMMAND while it holds the lock, and ends with the exit code of COMMAND.

While it waits, it says once a minute, on a terminal every two seconds, its place
in the queue, who is before it and who holds the lock.

COMMAND gets stdin, stdout and stderr as they are, and all signals. In its
environment are HOLDFAST_KEY, HOLDFAST_OWNER, and HOLDFAST_FENCE: a number that
is larger for each later holder of the lock. Let the resource that KEY guards
refuse smaller numbers than it has seen, if it can.

If the lock is lost, COMMAND gets the signal TERM, and KILL if it still runs
after --grace, both before anyone else can get the lock.

HUP, INT and TERM end holdfast by the same signal if they end COMMAND, or the wait.

Exit codes: those of COMMAND (128+n if signal n ended it), and
   64  wrong flag, key or URL
   69  the store cannot be opened or does not answer
   74  the lock was lost while COMMAND ran
   75  the lock is held by another (-E chooses another code)
  126  COMMAND cannot be executed
  127  COMMAND is not found`,
		Example: `  holdfast run nightly -- ./backup.sh
  holdfast run --try deploy -- make deploy        # fail at once if it is held
  holdfast run --slots 3 encode -- ffmpeg ...     # at most three at a time
  holdfast run --once-per 1h report -- ./mail.sh  # on whichever node comes first`,
		Args:              j.parse,
		RunE:              func(*cobra.Command, []string) error { return j.runToEnd() },
		ValidArgsFunction: store.completeRun,
	}
	j.register(cmd)
	return cmd
}

func (j *job) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.SortFlags = false
	f.BoolVarP(&j.try, "try", "n", false, "do not wait for the lock")
	f.DurationVarP(&j.wait, "wait", "w", time.Minute, "wait for the lock at most `duration`")
	f.IntVarP(&j.conflict, "conflict-exit-code", "E", cli.ExitHeld, "exit with this `code` if the lock is held by another")
	f.BoolVarP(&j.shared, "shared", "s", false, "share the lock with others that share it")
	f.IntVar(&j.slots, "slots", 0, "take one of `n` slots instead of the whole lock")
	f.IntVar(&j.weight, "weight", 1, "take `w` of the slots instead of one")
	f.DurationVar(&j.ttl, "ttl", 15*time.Second, "how long the lock outlives a machine that falls silent")
	f.DurationVar(&j.grace, "grace", 0, "what the command gets between TERM and KILL when the\nlock is lost (default a third of the TTL, at most 10s)")
	f.DurationVar(&j.maxHold, "max-hold", 0, "end a command that runs for longer")
	f.DurationVar(&j.atLeast, "at-least", 0, "keep the lock for so long from its start, though the\ncommand ends before")
	f.DurationVar(&j.oncePer, "once-per", 0, "do nothing, with success, if the command was begun less\nthan so long ago, on any machine, and has succeeded")
	f.StringVar(&j.note, "note", "", "`text` to show to those who wait or are refused (default the\ncommand line, cut to 80 letters)")
	f.BoolVarP(&j.quiet, "quiet", "q", false, "say nothing if the lock is held or waited for, the run is\nskipped, or the store has a warning")
}

// parse checks everything that can be checked before the store is used.
func (j *job) parse(cmd *cobra.Command, args []string) error {
	j.flags = cmd
	wrong := func(format string, args ...any) error { return cli.Usage(cmd.CommandPath(), format, args...) }
	switch dash := cmd.ArgsLenAtDash(); {
	case dash < 0:
		return wrong("put -- between KEY and COMMAND: holdfast run nightly -- ./backup.sh")
	case dash != 1:
		return wrong("got %d arguments before -- instead of one KEY", dash)
	case len(args) == 1:
		return wrong("there is no COMMAND after --")
	}
	j.key, j.argv = args[0], args[1:]
	if strings.HasPrefix(j.key, ownKeys) {
		return wrong("the key begins with %q, which holdfast keeps for itself", ownKeys)
	}
	if err := j.wrongValue(); err != nil {
		return wrong("%w", err)
	}
	if err := rehearse(j.key, j.options()...); err != nil {
		return wrong("%w", err)
	}
	if j.oncePer > 0 {
		if err := rehearse(j.marker()); err != nil {
			return wrong("--once-per keeps its mark under %sKEY, and %w", markPrefix, err)
		}
	}
	if !cmd.Flags().Changed("grace") {
		j.grace = min(j.ttl/3, maxGrace)
	}
	return nil
}

// options returns the options of the lock.
func (j *job) options() []holdfast.LockOption {
	set := j.flags.Flags().Changed
	opts := []holdfast.LockOption{holdfast.TTL(j.ttl), holdfast.Wait(j.wait), holdfast.Note(j.commandLine())}
	if set("note") {
		opts[2] = holdfast.Note(j.note)
	}
	if j.try {
		opts[1] = holdfast.Wait(0)
	}
	if j.shared {
		opts = append(opts, holdfast.Shared())
	}
	if set("slots") {
		opts = append(opts, holdfast.SlotsOf(j.weight, j.slots))
	}
	if set("max-hold") {
		opts = append(opts, holdfast.MaxHold(j.maxHold))
	}
	if set("at-least") {
		opts = append(opts, holdfast.MinHold(j.atLeast))
	}
	return opts
}
