// Package otellock reports locks to OpenTelemetry: how many locks are held and waited for,
// how long waiting and holding take, why locks are lost, and where in a trace the time
// goes.
//
//	trace, err := otellock.New(&otellock.Options{Name: otellock.KeyPrefix("/")})
//	if err != nil {
//		return err
//	}
//	locks, err := holdfast.Open(ctx, url, &holdfast.Options{Trace: trace})
//
// [holdfast.JoinTraces] joins the Trace with other observers, such as [holdfast.LogTrace].
//
// # Metrics
//
//	holdfast.lock.waiting        gauge      calls that wait for a lock
//	holdfast.lock.held           gauge      locks that are held
//	holdfast.lock.wait.duration  histogram  seconds until a call acquired its lock or gave
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
// Every metric carries holdfast.lock.name, which [Options].Name makes of the key. Keys
// themselves never become part of a metric: there may be millions.
//
// Useful alerts: lost above zero, since work may not have been alone; at_risk, the
// warning before a loss; store.errors; and waiting, if it keeps growing.
//
// # Spans
//
// If the context of a call belongs to a trace, the trace gets two child spans:
// "holdfast.wait", from the call to the lock or to giving up, and "holdfast.hold", until
// the lock ends. The spans are written at their end. A lost lock and a failing store are
// errors; a lock held elsewhere is not an error. Spans carry the fencing token, and the key
// if [Options].Keys is set.
package otellock
