package natslock

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-go/holdfast/caslock"
	"github.com/holdfast-go/holdfast/driver"
)

// A register is the records of a stream.
type register struct {
	conn   *nats.Conn
	js     jetstream.JetStream
	stream string

	mu      sync.Mutex
	reading reading // of the server's clock, zero if there is none
	watches map[*watch]struct{}
}

var (
	_ caslock.Watcher = (*register)(nil)
	_ caslock.Clock   = (*register)(nil)
)

type watch struct {
	mu      sync.Mutex // one call of changed at a time
	changed func(caslock.Record)
}

func (w *watch) report(r caslock.Record) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.changed(r)
}

// Read implements [caslock.Register]. The leader of the stream answers.
func (s *register) Read(ctx context.Context, key string) (caslock.Record, error) {
	request, err := json.Marshal(map[string]string{"last_by_subj": s.records() + word(key)})
	if err != nil {
		return caslock.Record{}, err
	}
	reply, err := s.request(ctx, &nats.Msg{Subject: "$JS.API.STREAM.MSG.GET." + s.stream, Data: request})
	if err != nil {
		return caslock.Record{}, err
	}
	var got struct {
		Error   *jetstream.APIError `json:"error"`
		Message struct {
			Sequence uint64 `json:"seq"`
			Data     []byte `json:"data"`
		} `json:"message"`
	}
	switch err := json.Unmarshal(reply.Data, &got); {
	case err != nil:
		return caslock.Record{}, fmt.Errorf("stream %s answers %.60q: %w", s.stream, reply.Data, err)
	case got.Error != nil && got.Error.ErrorCode == jetstream.JSErrCodeMessageNotFound:
		return caslock.Record{}, nil
	case got.Error != nil:
		return caslock.Record{}, s.refused(got.Error)
	}
	return caslock.Record{Version: version(got.Message.Sequence), Data: got.Message.Data}, nil
}

func version(sequence uint64) string { return strconv.FormatUint(sequence, 10) }

// Swap implements [caslock.Register].
func (s *register) Swap(ctx context.Context, key, old string, data []byte, keep time.Duration) (string, error) {
	m := nats.NewMsg(s.records() + word(key))
	m.Data = data
	m.Header.Set(jetstream.ExpectedStreamHeader, s.stream)
	m.Header.Set(jetstream.ExpectedLastSubjSeqHeader, cmp.Or(old, "0"))
	m.Header.Set(jetstream.MsgTTLHeader, fmt.Sprintf("%ds", int64((keep+time.Second-1)/time.Second)))
	reply, err := s.request(ctx, m)
	if err != nil {
		return "", err
	}
	var got struct {
		Error    *jetstream.APIError `json:"error"`
		Sequence uint64              `json:"seq"`
	}
	switch err := json.Unmarshal(reply.Data, &got); {
	case err != nil:
		return "", fmt.Errorf("stream %s answers %.60q: %w", s.stream, reply.Data, err)
	case got.Error != nil && (got.Error.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence || got.Error.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant):
		return "", caslock.ErrConflict
	case got.Error != nil:
		return "", s.refused(got.Error)
	}
	return version(got.Sequence), nil
}

// request sends one request, and does not repeat the request. An error that matches
// [driver.ErrUnwritten] says that no server has received the request.
func (s *register) request(ctx context.Context, m *nats.Msg) (*nats.Msg, error) {
	if s.conn.IsClosed() { // A connection that closes later may have sent the request.
		return nil, fmt.Errorf("%w: %w", driver.ErrUnwritten, nats.ErrConnectionClosed)
	}
	ctx, cancel := context.WithTimeout(ctx, longest) // An answer may be lost.
	defer cancel()
	reply, err := s.conn.RequestMsgWithContext(ctx, m)
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return nil, fmt.Errorf("%w: no server has stream %s now: without a majority of the servers, or before holdfast init, there is no leader (%w)", driver.ErrUnwritten, s.stream, err)
	case errors.Is(err, nats.ErrReconnectBufExceeded): // There is no connection, perhaps because the login is refused.
		return nil, fmt.Errorf("%w: no server is connected: %w", driver.ErrUnwritten, cmp.Or(s.conn.LastError(), err))
	case errors.Is(err, nats.ErrMaxPayload):
		return nil, fmt.Errorf("%w: %w", driver.ErrUnwritten, err)
	case err != nil: // The server does not answer a request without the right.
		return nil, errors.Join(err, s.violation(m.Subject))
	}
	return reply, nil
}

// violation returns what the server has said of a missing right for a subject, or nil.
func (s *register) violation(subject string) error {
	err := s.conn.LastError()
	if errors.Is(err, nats.ErrPermissionViolation) && strings.Contains(err.Error(), strings.ToLower(subject)) {
		return err
	}
	return nil
}

// refused is the error for an answer of the server. An answer that matches
// [driver.ErrUnwritten] comes before any server stores the message. A leader that fails to
// store a message answers 10077, but the other replicas may have stored it.
func (s *register) refused(err *jetstream.APIError) error {
	const (
		messageTooLarge = 10054
		wrongStream     = 10060
		noMessageTTL    = 10166
	)
	switch err.ErrorCode {
	case noMessageTTL:
		return fmt.Errorf("%w: %w: set allow_msg_ttl of stream %s", driver.ErrInvalid, err, s.stream)
	case jetstream.JSErrCodeStreamNotFound, wrongStream, jetstream.JSErrCodeJetStreamNotEnabled, jetstream.JSErrCodeJetStreamNotEnabledForAccount:
		// A server that has just started may answer so. Check tells whether the stream is missing.
		return fmt.Errorf("%w: %w: if there is no stream %s, run holdfast init", driver.ErrUnwritten, err, s.stream)
	case messageTooLarge:
		return fmt.Errorf("%w: %w", driver.ErrUnwritten, err)
	}
	return err
}

// List implements [caslock.Register].
func (s *register) List(ctx context.Context, _ string) iter.Seq2[caslock.Record, error] {
	return func(yield func(caslock.Record, error) bool) {
		if err := s.list(ctx, yield); err != nil {
			yield(caslock.Record{}, err)
		}
	}
}

func (s *register) list(ctx context.Context, yield func(caslock.Record, error) bool) error {
	consumer, err := s.js.OrderedConsumer(ctx, s.stream, jetstream.OrderedConsumerConfig{FilterSubjects: []string{s.records() + ">"}})
	if err != nil {
		return err
	}
	if consumer.CachedInfo().NumPending == 0 { // as of a moment ago; Info needs a further right
		return nil
	}
	messages, err := consumer.Messages()
	if err != nil {
		return err
	}
	defer messages.Stop()
	stop := context.AfterFunc(ctx, messages.Stop)
	defer stop()
	for {
		m, err := messages.Next()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return err
		}
		meta, err := m.Metadata()
		if err != nil {
			return err
		}
		if !yield(caslock.Record{Version: version(meta.Sequence.Stream), Data: m.Data()}, nil) || meta.NumPending == 0 {
			return nil
		}
	}
}

// longest is how long a call waits for an answer at most, also if its context has no deadline.
const longest = time.Minute

// Watch implements [caslock.Watcher]. The server sends a report for each stored message.
func (s *register) Watch(ctx context.Context, key string, changed func(caslock.Record)) (stop func(), err error) {
	w := &watch{changed: changed}
	sub, err := s.conn.Subscribe(s.changes()+word(key), func(m *nats.Msg) {
		if sequence := m.Header.Get(jetstream.SequenceHeader); sequence != "" {
			w.report(caslock.Record{Version: sequence, Data: m.Data})
		} else {
			w.report(caslock.Record{})
		}
	})
	if err != nil {
		return nil, err
	}
	// A server knows a subscription once it has answered a later message.
	flush, cancel := context.WithTimeout(ctx, longest) // Without a deadline, the client refuses.
	defer cancel()
	if err := cmp.Or(s.conn.FlushWithContext(flush), s.violation(sub.Subject)); err != nil {
		return nil, errors.Join(err, sub.Unsubscribe())
	}
	s.mu.Lock()
	s.watches[w] = struct{}{}
	s.mu.Unlock()
	return func() {
		s.mu.Lock()
		delete(s.watches, w)
		s.mu.Unlock()
		sub.Unsubscribe()
	}, nil
}

// missed tells every watch that reports may be missing.
func (s *register) missed() {
	s.mu.Lock()
	all := make([]*watch, 0, len(s.watches))
	for w := range s.watches {
		all = append(all, w)
	}
	s.mu.Unlock()
	for _, w := range all {
		w.report(caslock.Record{})
	}
}

// A reading is what the server's clock showed.
type reading struct {
	shown time.Time
	at    time.Time // by the clock of this process
}

const (
	often = time.Minute // The server tells its time no more often.
	step  = time.Second // A larger step of the wall clock of this process is noticed.
)

// after returns the server's time when so much has passed by the monotonic clock and by the
// wall clock of this process. A reading is too old after a minute, and if the clocks disagree: the
// wall clock was set, or the machine has slept.
func (r reading) after(monotonic, wall time.Duration) (now time.Time, fresh bool) {
	fresh = !r.at.IsZero() && monotonic < often && (wall-monotonic).Abs() < step
	return r.shown.Add(monotonic), fresh
}

// Now implements [caslock.Clock].
func (s *register) Now(ctx context.Context) (time.Time, error) {
	s.mu.Lock()
	last := s.reading
	s.mu.Unlock()
	began := time.Now()
	if now, fresh := last.after(began.Sub(last.at), began.Round(0).Sub(last.at.Round(0))); fresh {
		return now, nil
	}
	reply, err := s.request(ctx, &nats.Msg{Subject: "$JS.API.STREAM.INFO." + s.stream})
	if err != nil {
		return time.Time{}, err
	}
	var got struct {
		Error *jetstream.APIError `json:"error"`
		Now   time.Time           `json:"ts"`
	}
	switch err := json.Unmarshal(reply.Data, &got); {
	case err != nil || got.Error == nil && got.Now.IsZero():
		return time.Time{}, fmt.Errorf("stream %s tells no time: %.60q", s.stream, reply.Data)
	case got.Error != nil:
		return time.Time{}, s.refused(got.Error)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reading = reading{shown: got.Now, at: time.Now()}
	return got.Now, nil
}
