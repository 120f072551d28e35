package otellock

import (
	"errors"

	"go.opentelemetry.io/otel/metric"

	"github.com/holdfast-go/holdfast"
)

// metrics are the instruments.
type metrics struct {
	Options
	waiting, held                 metric.Int64UpDownCounter
	waited, heldFor               metric.Float64Histogram
	lost, atRisk, renewals, fails metric.Int64Counter
}

// The bounds of the histograms, in seconds: acquiring a lock takes from a fraction of a
// millisecond to as long as other holders work.
var bounds = metric.WithExplicitBucketBoundaries(
	0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800)

func newMetrics(o Options) (*metrics, error) {
	meter := o.Meters.Meter(scope)
	m := &metrics{Options: o}
	var errs [8]error
	m.waiting, errs[0] = meter.Int64UpDownCounter("holdfast.lock.waiting", metric.WithUnit("{call}"),
		metric.WithDescription("Calls that want a lock and do not have it yet."))
	m.held, errs[1] = meter.Int64UpDownCounter("holdfast.lock.held", metric.WithUnit("{lock}"),
		metric.WithDescription("Locks that are held."))
	m.waited, errs[2] = meter.Float64Histogram("holdfast.lock.wait.duration", metric.WithUnit("s"), bounds,
		metric.WithDescription("How long a call took for its lock, or for giving up."))
	m.heldFor, errs[3] = meter.Float64Histogram("holdfast.lock.hold.duration", metric.WithUnit("s"), bounds,
		metric.WithDescription("How long a lock was held."))
	m.lost, errs[4] = meter.Int64Counter("holdfast.lock.lost", metric.WithUnit("{lock}"),
		metric.WithDescription("Locks that were lost."))
	m.atRisk, errs[5] = meter.Int64Counter("holdfast.lock.at_risk", metric.WithUnit("{event}"),
		metric.WithDescription("Times that half of a lease was gone without a renewal."))
	m.renewals, errs[6] = meter.Int64Counter("holdfast.lock.renewals", metric.WithUnit("{renewal}"),
		metric.WithDescription("Renewals of leases."))
	m.fails, errs[7] = meter.Int64Counter("holdfast.store.errors", metric.WithUnit("{error}"),
		metric.WithDescription("Calls to the store that failed."))
	return m, errors.Join(errs[:]...)
}

func (m *metrics) trace() *holdfast.Trace {
	return &holdfast.Trace{
		Wanted: func(e holdfast.Event) { m.waiting.Add(e.Context, 1, m.of(e)) },
		Tried: func(e holdfast.Event) {
			if !errors.Is(e.Err, holdfast.ErrHeld) && e.Context.Err() == nil {
				m.failed(e, "lock")
			}
		},
		Locked: func(e holdfast.Event) {
			m.held.Add(e.Context, 1, m.of(e))
			m.ended(e)
		},
		GaveUp:  m.ended,
		Renewed: func(e holdfast.Event) { m.renewals.Add(e.Context, 1, m.of(e)) },
		AtRisk:  func(e holdfast.Event) { m.atRisk.Add(e.Context, 1, m.of(e)) },
		Lost:    m.over,
		Unlocked: func(e holdfast.Event) {
			if e.Err != nil && !lost(e) {
				m.failed(e, "unlock")
			}
			m.over(e)
		},
	}
}

func (m *metrics) of(e holdfast.Event) metric.MeasurementOption {
	return metric.WithAttributes(m.attributes(e)...)
}

// ended counts the end of a wait.
func (m *metrics) ended(e holdfast.Event) {
	m.waiting.Add(e.Context, -1, m.of(e))
	m.waited.Record(e.Context, e.Waited.Seconds(), metric.WithAttributes(m.attributes(e, outcomeAttribute.String(outcome(e)))...))
}

// over counts the end of a lock.
func (m *metrics) over(e holdfast.Event) {
	how := "unlocked"
	if lost(e) {
		how = "lost"
		m.lost.Add(e.Context, 1, metric.WithAttributes(m.attributes(e, reasonAttribute.String(reason(e)))...))
	}
	m.held.Add(e.Context, -1, m.of(e))
	m.heldFor.Record(e.Context, e.Held.Seconds(), metric.WithAttributes(m.attributes(e, outcomeAttribute.String(how))...))
}

func (m *metrics) failed(e holdfast.Event, operation string) {
	m.fails.Add(e.Context, 1, metric.WithAttributes(m.attributes(e, operationAttribute.String(operation))...))
}
