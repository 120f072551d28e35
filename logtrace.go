package holdfast

import "log/slog"

// LogTrace returns a Trace that logs every event with key, owner and, after the grant, the
// token. The levels are:
//
//   - Warn: a problem with a held lock.
//   - Info: a lock is acquired, given up or released.
//   - Debug: the remaining events.
//
// The handler receives the context of the call that wanted the lock. With a nil logger the
// Trace logs nothing.
//
// [Options].Logger also receives losses, and events without a lock.
func LogTrace(log *slog.Logger) *Trace {
	if log == nil {
		return &Trace{}
	}
	on := func(message string, level slog.Level) func(Event) {
		return func(e Event) {
			if log.Enabled(e.Context, level) {
				log.LogAttrs(e.Context, level, message, e.attributes()...)
			}
		}
	}
	unlocked, unsure := on("lock is unlocked", slog.LevelInfo), on("lock may not be unlocked", slog.LevelWarn)
	return &Trace{
		Wanted:  on("lock is wanted", slog.LevelDebug),
		Tried:   on("lock is refused", slog.LevelDebug),
		Locked:  on("lock is held", slog.LevelInfo),
		GaveUp:  on("lock is given up", slog.LevelInfo),
		Renewed: on("lock is renewed", slog.LevelDebug),
		AtRisk:  on("lock is at risk", slog.LevelWarn),
		Lost:    on("lock is lost", slog.LevelWarn),
		Unlocked: func(e Event) {
			if e.Err != nil {
				unsure(e)
				return
			}
			unlocked(e)
		},
	}
}

// attributes are the known facts of an event.
func (e Event) attributes() []slog.Attr {
	attrs := []slog.Attr{slog.String("key", e.Key), slog.String("owner", e.Owner)}
	if e.Fence > 0 {
		attrs = append(attrs, slog.Uint64("fence", e.Fence))
	}
	if e.Waited > 0 {
		attrs = append(attrs, slog.Duration("waited", e.Waited))
	}
	if e.Held > 0 {
		attrs = append(attrs, slog.Duration("held", e.Held))
	}
	if e.Parked {
		attrs = append(attrs, slog.Bool("parked", true))
	}
	if e.Err != nil {
		attrs = append(attrs, slog.Any("error", e.Err))
	}
	return attrs
}
