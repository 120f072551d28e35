// Package otellock tells OpenTelemetry about locks: how many are held and waited
// for, how long both take, what is lost and why, and where in a trace the time goes.
//
//	trace, err := otellock.New(&otellock.Options{Name: otellock.Before("/")})
//	if err != nil {
//		return err
//	}
//	locks, err := holdfast.Open(ctx, url, &holdfast.Options{Trace: trace})
//
// [holdfast.JoinTraces] joins it with other observers, such as
// [holdfast.LogTrace].
//
// # Metrics
//
//	holdfast.lock.waiting        gauge      calls that want a lock and do not have it yet
//	holdfast.lock.held           gauge      locks that are held
//	holdfast.lock.wait.duration  histogram  seconds that a call took for its lock, or for giving
//	                                        up, by holdfast.outcome: locked, held, cancelled, failed
//	holdfast.lock.hold.duration  histogram  seconds that a lock was held, by holdfast.outcome:
//	                                        unlocked, lost
//	holdfast.lock.lost           counter    locks that were lost, by holdfast.reason, such as
//	                                        expired, unreachable, taken, broken
//	holdfast.lock.at_risk        counter    times that half of a lease was gone without a renewal
//	holdfast.lock.renewals       counter    renewals
//	holdfast.store.errors        counter    calls to the store that failed, by holdfast.operation:
//	                                        lock, unlock
//
// All carry holdfast.lock.name, which [Options].Name makes of the key. Keys
// themselves never become part of a metric: there may be millions.
//
// Worth an alarm: anything in lost, since work may not have been alone; at_risk,
// which comes before; store.errors; and waiting that grows.
//
// # Spans
//
// Where the context of a call belongs to a trace, the trace gets two spans below
// that: "holdfast.wait", from the call to the lock or to giving up, and
// "holdfast.hold", until the lock ends. Both are written at their end. A loss and
// a store that fails are errors; that another holds the lock is none. Spans carry
// the fencing token, and the key if [Options].Keys says so.
package otellock
