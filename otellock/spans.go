package otellock

import (
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-go/holdfast"
)

// spans writes a span for each wait and each lock.
type spans struct {
	Options
	tracer trace.Tracer
}

func newSpans(o Options) *spans { return &spans{o, o.Tracers.Tracer(scope)} }

func (s *spans) trace() *holdfast.Trace {
	return &holdfast.Trace{
		Locked:   s.wait,
		GaveUp:   s.wait,
		Lost:     s.hold,
		Unlocked: s.hold,
	}
}

func (s *spans) hold(e holdfast.Event) {
	more := []attribute.KeyValue{outcomeAttribute.String("unlocked")}
	if lost(e) {
		more = []attribute.KeyValue{outcomeAttribute.String("lost"), reasonAttribute.String(reason(e))}
	}
	s.write("holdfast.hold", e, e.Held, e.Err != nil, more...)
}

func (s *spans) wait(e holdfast.Event) {
	how := outcome(e)
	s.write("holdfast.wait", e, e.Waited, how == "failed", outcomeAttribute.String(how))
}

// write writes a span that ends now. Without a trace in the context, write does nothing:
// otherwise every lock of an untraced job would start its own trace.
func (s *spans) write(name string, e holdfast.Event, took time.Duration, failed bool, more ...attribute.KeyValue) {
	if !trace.SpanContextFromContext(e.Context).IsValid() {
		return
	}
	now := time.Now()
	_, span := s.tracer.Start(e.Context, name, trace.WithTimestamp(now.Add(-took)))
	defer span.End(trace.WithTimestamp(now))
	if !span.IsRecording() {
		return
	}
	span.SetAttributes(s.attributes(e, more...)...)
	if s.Keys {
		span.SetAttributes(keyAttribute.String(e.Key))
	}
	if e.Fence > 0 {
		span.SetAttributes(fenceAttribute.Int64(int64(e.Fence)))
	}
	if failed {
		span.SetStatus(codes.Error, e.Err.Error())
	}
}
