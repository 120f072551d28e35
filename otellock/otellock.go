package otellock

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-go/holdfast"
)

const scope = "github.com/holdfast-go/holdfast/otellock"

// The attributes of metrics and spans.
const (
	nameAttribute      = attribute.Key("holdfast.lock.name")
	keyAttribute       = attribute.Key("holdfast.lock.key")
	fenceAttribute     = attribute.Key("holdfast.lock.fence")
	outcomeAttribute   = attribute.Key("holdfast.outcome")
	reasonAttribute    = attribute.Key("holdfast.reason")
	operationAttribute = attribute.Key("holdfast.operation")
)

// Options are the settings of [New]. The zero value is ready to use.
type Options struct {
	// Meters makes the instruments. Default: the global provider of OpenTelemetry.
	Meters metric.MeterProvider

	// Tracers makes the spans. Default: the global provider of OpenTelemetry.
	Tracers trace.TracerProvider

	// Name returns the name under which a key is counted. Use few names, such as a single
	// name for all accounts: each name adds a line to every metric. Default: no name, so
	// that all locks are counted together.
	Name func(key string) string

	// Attributes are added to every metric and span, for example the name of the store.
	Attributes []attribute.KeyValue

	// Keys puts the key on spans. Keys may name people.
	Keys bool
}

// New returns a Trace that counts, measures and traces the locks of one or more Lockers.
// nil means the default options. Errors come from the MeterProvider.
func New(opts *Options) (*holdfast.Trace, error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	if o.Meters == nil {
		o.Meters = otel.GetMeterProvider()
	}
	if o.Tracers == nil {
		o.Tracers = otel.GetTracerProvider()
	}
	m, err := newMetrics(o)
	if err != nil {
		return nil, err
	}
	return holdfast.JoinTraces(m.trace(), newSpans(o).trace()), nil
}

// KeyPrefix returns an [Options].Name: the text before the first separator of a key, "account"
// for "account/42". Keys without the separator are "other". The program must choose the
// text: clients that choose the beginning of keys create unlimited names.
func KeyPrefix(separator string) func(key string) string {
	return func(key string) string {
		name, _, found := strings.Cut(key, separator)
		if !found {
			return "other"
		}
		return cmp.Or(name, "other")
	}
}

// attributes returns the common attributes of all metrics and spans of an event, and more.
func (o *Options) attributes(e holdfast.Event, more ...attribute.KeyValue) []attribute.KeyValue {
	all := make([]attribute.KeyValue, 0, len(o.Attributes)+len(more)+4)
	all = append(append(all, o.Attributes...), more...)
	if o.Name != nil {
		all = append(all, nameAttribute.String(o.Name(e.Key)))
	}
	return all
}

// outcome names the outcome of a call for a lock.
func outcome(e holdfast.Event) string {
	switch {
	case e.Err == nil:
		return "locked"
	case errors.Is(e.Err, context.Canceled) || errors.Is(e.Err, holdfast.ErrClosed):
		return "cancelled"
	case errors.Is(e.Err, holdfast.ErrHeld):
		return "held"
	case e.Context.Err() != nil:
		return "cancelled"
	}
	return "failed"
}

// lost reports whether a lock ended before it was unlocked. Sometimes the loss is noticed
// only at the unlock.
func lost(e holdfast.Event) bool { return errors.Is(e.Err, holdfast.ErrLost) }

// reason says why a lock was lost.
func reason(e holdfast.Event) string {
	var lost *holdfast.LostError
	if errors.As(e.Err, &lost) {
		return string(lost.Reason)
	}
	return "unknown"
}
