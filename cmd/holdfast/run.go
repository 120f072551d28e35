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
		Long: `Run waits for the lock on KEY, up to a minute or the time of --wait. Run starts
COMMAND while holding the lock, and exits with the exit code of COMMAND.

A waiting run prints its place in the queue, the waiter ahead and the holder: once
a minute, on a terminal every two seconds.

COMMAND gets stdin, stdout, stderr and every signal. The environment of COMMAND has
HOLDFAST_KEY, HOLDFAST_OWNER and HOLDFAST_FENCE. HOLDFAST_FENCE is a number that
grows with every holder of the lock. If the resource behind KEY can compare
numbers, let the resource refuse a smaller number than the largest so far.

If the lock is lost, COMMAND gets the signal TERM, or the signal of --signal, and
KILL after --grace. Both come before another process can acquire the lock.

If HUP, INT or TERM ends COMMAND or the wait, holdfast ends by the same signal.

Exit codes: the code of COMMAND (128+n if signal n ended COMMAND), and
   64  wrong flag, key or URL
   69  the store cannot be opened or does not answer
   74  the lock was lost while COMMAND ran
   75  another process holds the lock (-E chooses a different code)
  126  COMMAND cannot be executed
  127  COMMAND is not found`,
		Example: `  holdfast run nightly -- ./backup.sh
  holdfast run --try deploy -- make deploy        # fail at once if the lock is held
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
	f.IntVarP(&j.conflict, "conflict-exit-code", "E", cli.ExitHeld, "exit with this `code` if another process holds the lock")
	f.BoolVarP(&j.shared, "shared", "s", false, "take a read lock: readers hold together")
	f.IntVar(&j.slots, "slots", 0, "take one of `n` slots instead of the whole lock")
	f.IntVar(&j.weight, "weight", 1, "take `w` of the slots instead of one")
	f.DurationVar(&j.ttl, "ttl", 15*time.Second, "how long the lock outlives a machine that falls silent")
	f.DurationVar(&j.grace, "grace", 0, "time of the command between --signal and KILL after a loss of\nthe lock (default a third of the TTL, at most 10s)")
	f.StringVar(&j.signal, "signal", "TERM", "send this `signal` to the command after a loss of the\nlock: "+lossNames)
	f.DurationVar(&j.maxHold, "max-hold", 0, "stop a command that runs longer")
	f.DurationVar(&j.atLeast, "at-least", 0, "keep the key locked for at least this long, even if the\ncommand ends sooner")
	f.DurationVar(&j.oncePer, "once-per", 0, "do nothing, with success, if the command has succeeded\non some machine, and began less than this long ago")
	f.StringVar(&j.note, "note", "", "`text` to show to waiters and refused callers (default the\ncommand line, cut to 80 letters)")
	f.BoolVarP(&j.quiet, "quiet", "q", false, "print nothing about a held lock, a wait, a skipped run or a\nwarning of the store")
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
