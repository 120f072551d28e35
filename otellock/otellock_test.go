package otellock

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/servers"
	_ "github.com/holdfast-go/holdfast/memlock"
	_ "github.com/holdfast-go/holdfast/redislock"
)

// A telescope collects what a Trace tells of locks.
type telescope struct {
	*testing.T
	reader *metric.ManualReader
	spans  *tracetest.SpanRecorder
	tracer trace.Tracer
	locks  *holdfast.Locker
}

func look(t *testing.T, store string, ttl time.Duration, opts Options) *telescope {
	t.Helper()
	s := &telescope{T: t, reader: metric.NewManualReader(), spans: tracetest.NewSpanRecorder()}
	tracers := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(s.spans))
	s.tracer = tracers.Tracer("test")
	opts.Meters, opts.Tracers = metric.NewMeterProvider(metric.WithReader(s.reader)), tracers
	tr, err := New(&opts)
	if err != nil {
		t.Fatal(err)
	}
	s.locks = servers.Insist(t, func(ctx context.Context) (*holdfast.Locker, error) {
		return holdfast.Open(ctx, store, &holdfast.Options{TTL: ttl, Trace: tr})
	})
	t.Cleanup(func() { s.locks.Close() }) // complains if its server has gone
	return s
}

// lock locks a key for the test.
func (s *telescope) lock(ctx context.Context, key string) *holdfast.Lock {
	s.Helper()
	lock, err := s.locks.Lock(ctx, key)
	if err != nil {
		s.Fatal(err)
	}
	return lock
}

func (s *telescope) unlock(lock *holdfast.Lock) {
	s.Helper()
	if err := lock.Unlock(); err != nil {
		s.Error(err)
	}
}

// take takes a lock away from its holder.
func (s *telescope) take(lock *holdfast.Lock) {
	s.Helper()
	if err := s.locks.Break(s.Context(), lock.Key(), lock.ID()); err != nil {
		s.Fatal(err)
	}
	<-lock.Done()
}

// value returns what a metric says under these attributes: a sum, or how many
// values a histogram has. It is 0 if nothing was ever counted there.
func (s *telescope) value(name string, attrs ...attribute.KeyValue) (n int64) {
	s.Helper()
	var all metricdata.ResourceMetrics
	if err := s.reader.Collect(s.Context(), &all); err != nil {
		s.Fatal(err)
	}
	want := attribute.NewSet(attrs...)
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			if m.Name != name {
				continue
			}
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					if p.Attributes.Equals(&want) {
						n += p.Value
					}
				}
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					if p.Attributes.Equals(&want) {
						n += int64(p.Count)
					}
				}
			default:
				s.Fatalf("%s is a %T", name, data)
			}
		}
	}
	return n
}

// await waits until a metric has a value: losses are told in the background.
func (s *telescope) await(want int64, name string, attrs ...attribute.KeyValue) {
	s.Helper()
	s.until(func(n int64) bool { return n == want }, name, attrs...)
}

// some waits until a metric has a value above 0.
func (s *telescope) some(name string, attrs ...attribute.KeyValue) {
	s.Helper()
	s.until(func(n int64) bool { return n > 0 }, name, attrs...)
}

func (s *telescope) until(good func(int64) bool, name string, attrs ...attribute.KeyValue) {
	s.Helper()
	servers.Until(s, fmt.Sprint(name, " ", attrs), func() bool { return good(s.value(name, attrs...)) })
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := attribute.String("store", "memory")
		s := look(t, "mem://", 2*time.Second, Options{Name: KeyPrefix("/"), Attributes: []attribute.KeyValue{store}})
		name := nameAttribute.String("account")
		with := func(more ...attribute.KeyValue) []attribute.KeyValue { return append(more, store, name) }

		lock := s.lock(t.Context(), "account/42")
		s.await(1, "holdfast.lock.held", with()...)
		if _, err := s.locks.TryLock(t.Context(), "account/42"); !errors.Is(err, holdfast.ErrHeld) {
			t.Error(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		waited := make(chan error)
		go func() {
			_, err := s.locks.Lock(ctx, "account/42")
			waited <- err
		}()
		s.await(1, "holdfast.lock.waiting", with()...)
		cancel()
		if err := <-waited; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		s.some("holdfast.lock.renewals", with()...)
		s.unlock(lock)

		s.take(s.lock(t.Context(), "account/43"))
		s.await(1, "holdfast.lock.lost", with(reasonAttribute.String("broken"))...)

		lock = s.lock(t.Context(), "plain")
		s.await(1, "holdfast.lock.held", store, nameAttribute.String("other"))
		s.unlock(lock)

		s.await(0, "holdfast.lock.held", with()...)
		s.await(0, "holdfast.lock.waiting", with()...)
		for outcome, want := range map[string]int64{"locked": 2, "held": 1, "cancelled": 1} {
			s.await(want, "holdfast.lock.wait.duration", with(outcomeAttribute.String(outcome))...)
		}
		for outcome, want := range map[string]int64{"unlocked": 1, "lost": 1} {
			s.await(want, "holdfast.lock.hold.duration", with(outcomeAttribute.String(outcome))...)
		}
	})
}

// TestOutage kills the server of the store. The TTL is so long that a busy machine tells of
// the risk before the loss.
func TestOutage(t *testing.T) {
	t.Parallel()
	r := servers.StartRedis(t)
	s := look(t, r.URL(), 20*time.Second, Options{})
	lock, err := servers.Patient(t.Context(), s.locks.Lock, "key")
	if err != nil {
		t.Fatal(err)
	}
	s.await(1, "holdfast.lock.held")
	r.Kill()
	s.some("holdfast.lock.at_risk")
	s.await(1, "holdfast.lock.lost", reasonAttribute.String("unreachable"))
	s.await(0, "holdfast.lock.held")
	if _, err := s.locks.TryLock(t.Context(), "another"); err == nil || errors.Is(err, holdfast.ErrHeld) {
		t.Errorf("a store without a server: %v", err)
	}
	s.some("holdfast.store.errors", operationAttribute.String("lock"))
	s.some("holdfast.lock.wait.duration", outcomeAttribute.String("failed"))
	if !errors.Is(lock.Unlock(), holdfast.ErrLost) {
		t.Error("the lock is not lost")
	}
}

// TestGauges lets many lock and unlock at once, some in vain: in the end nobody
// holds and nobody waits.
func TestGauges(t *testing.T) {
	t.Parallel()
	s := look(t, "mem://", time.Hour, Options{})
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			for range 20 {
				lock, err := s.locks.Lock(t.Context(), "key", holdfast.Wait(time.Duration(i)*time.Millisecond))
				if errors.Is(err, holdfast.ErrHeld) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				s.unlock(lock)
			}
		})
	}
	left := s.lock(t.Context(), "left to Close")
	wg.Wait()
	if err := s.locks.Close(); err != nil {
		t.Error(err)
	}
	runtime.KeepAlive(left)
	s.await(0, "holdfast.lock.held")
	s.await(0, "holdfast.lock.waiting")
	got, ended := s.value("holdfast.lock.wait.duration", outcomeAttribute.String("locked")), s.value("holdfast.lock.hold.duration", outcomeAttribute.String("unlocked"))
	if got == 0 || got != ended {
		t.Errorf("%d locks were taken, %d ended", got, ended)
	}
}

func TestSpans(t *testing.T) {
	t.Parallel()
	s := look(t, "mem://", time.Hour, Options{Name: KeyPrefix("/"), Keys: true})
	s.unlock(s.lock(t.Context(), "account/41")) // belongs to no trace

	ctx, parent := s.tracer.Start(t.Context(), "request")
	lock := s.lock(ctx, "account/42")
	fence := lock.Fence()
	if _, err := s.locks.TryLock(ctx, "account/42"); !errors.Is(err, holdfast.ErrHeld) {
		t.Error(err)
	}
	s.unlock(lock)
	s.take(s.lock(ctx, "account/43"))
	s.await(1, "holdfast.lock.lost", nameAttribute.String("account"), reasonAttribute.String("broken"))
	if err := s.locks.Close(); err != nil { // the loss has been told when it returns
		t.Error(err)
	}

	type told struct {
		span, key, outcome string
		code               codes.Code
	}
	var got []told
	for _, span := range s.spans.Ended() {
		if span.Parent().SpanID() != parent.SpanContext().SpanID() {
			t.Errorf("%s is below %v, want the request", span.Name(), span.Parent())
		}
		if span.EndTime().Before(span.StartTime()) || span.EndTime().Sub(span.StartTime()) > time.Minute {
			t.Errorf("%s goes from %v to %v", span.Name(), span.StartTime(), span.EndTime())
		}
		attrs := attribute.NewSet(span.Attributes()...)
		key, _ := attrs.Value(keyAttribute)
		how, _ := attrs.Value(outcomeAttribute)
		if name, _ := attrs.Value(nameAttribute); name.AsString() != "account" {
			t.Errorf("%s has the name %q", span.Name(), name.AsString())
		}
		if token, ok := attrs.Value(fenceAttribute); key.AsString() == "account/42" && how.AsString() != "held" && uint64(token.AsInt64()) != fence {
			t.Errorf("%s has the token %v, %v; want %d", span.Name(), token.AsInt64(), ok, fence)
		}
		got = append(got, told{span.Name(), key.AsString(), how.AsString(), span.Status().Code})
	}
	want := []told{
		{"holdfast.wait", "account/42", "locked", codes.Unset},
		{"holdfast.wait", "account/42", "held", codes.Unset},
		{"holdfast.hold", "account/42", "unlocked", codes.Unset},
		{"holdfast.wait", "account/43", "locked", codes.Unset},
		{"holdfast.hold", "account/43", "lost", codes.Error},
	}
	if !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestNoKeys: without Options that say so, no key is told.
func TestNoKeys(t *testing.T) {
	t.Parallel()
	s := look(t, "mem://", time.Hour, Options{})
	ctx, _ := s.tracer.Start(t.Context(), "request")
	s.unlock(s.lock(ctx, "alice@example.com"))
	for _, span := range s.spans.Ended() {
		for _, a := range span.Attributes() {
			if a.Key == keyAttribute || a.Key == nameAttribute || a.Value.String() == "alice@example.com" {
				t.Errorf("%s has %s = %s", span.Name(), a.Key, a.Value.String())
			}
		}
	}
	s.await(1, "holdfast.lock.wait.duration", outcomeAttribute.String("locked"))
}

func TestBefore(t *testing.T) {
	for key, want := range map[string]string{"account/42": "account", "a/b/c": "a", "plain": "other", "/x": "other", "": "other"} {
		if got := KeyPrefix("/")(key); got != want {
			t.Errorf("%q: %q, want %q", key, got, want)
		}
	}
}
