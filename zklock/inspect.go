package zklock

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/hosturl"
	"github.com/holdfast-go/holdfast/internal/zoo"
)

// usual is the TTL of the session for calls without a claim.
const usual = 15 * time.Second

// Holders implements [driver.Inspector]. Only the owner knows the remaining time of a
// claim. Readers are shown with the current token of their phase. A reader that has
// held since before a slot came may have a smaller token.
func (s *Store) Holders(ctx context.Context, key string) (all []driver.Holder, err error) {
	err = retry(ctx, func() (err error) {
		all, err = s.holders(ctx, key)
		return err
	})
	return all, err
}

func (s *Store) holders(ctx context.Context, key string) ([]driver.Holder, error) {
	k, err := s.session(ctx, usual)
	if err != nil {
		return nil, err
	}
	dir := s.dir(key)
	q, _, err := k.list(ctx, dir)
	if err = cmp.Or(err, q.unread(key)); err != nil {
		return nil, err
	}
	requests := []zoo.Request{zoo.Get(dir)}
	for _, p := range q.places {
		requests = append(requests, zoo.Get(dir+"/"+p.name))
	}
	calls, err := k.zoo.Send(ctx, requests...)
	if err != nil {
		return nil, err
	}
	m, _ := marksIn(ctx, key, calls[0]) // for people only
	var all []driver.Holder
	granted := q.granted()
	for i, p := range q.places {
		err := calls[i+1].Wait(ctx)
		if errors.Is(err, zoo.NoNode) {
			continue
		}
		if err != nil {
			return nil, err
		}
		var f facts
		text, stat := calls[i+1].Data()
		_ = json.Unmarshal([]byte(text), &f) // other contents are not shown
		h := p.holder(f, stat)
		if p.shared() {
			h.Fence = m.phase
		}
		if h.Waiting = i >= granted; h.Waiting {
			h.Fence = 0
		}
		all = append(all, h)
	}
	return all, nil
}

// lists is how many keys are listed at once.
const lists = 100

// Keys implements [driver.Inspector]. The servers list all keys in a single answer,
// whatever the prefix.
func (s *Store) Keys(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		k, names, err := s.names(ctx, prefix)
		for err == nil && len(names) > 0 {
			some := names[:min(len(names), lists)]
			names = names[len(some):]
			var requests []zoo.Request
			for _, name := range some {
				requests = append(requests, zoo.List(s.root+"/"+name))
			}
			var calls []*zoo.Call
			if calls, err = k.zoo.Send(ctx, requests...); err != nil {
				break
			}
			for i, call := range calls {
				err := call.Wait(ctx)
				if err != nil && !errors.Is(err, zoo.NoNode) {
					yield("", certain(err))
					return
				}
				key, _ := keyOf(some[i])
				q := parseQueue(call.Children())
				if (len(q.places) > 0 || q.newest > 0) && !yield(key, nil) {
					return
				}
			}
		}
		if err != nil {
			yield("", certain(err))
		}
	}
}

// names returns the nodes of the keys that begin with prefix.
func (s *Store) names(ctx context.Context, prefix string) (*session, []string, error) {
	k, err := s.session(ctx, usual)
	if err != nil {
		return nil, nil, err
	}
	calls, err := k.zoo.Send(ctx, barrier(s.root), zoo.List(s.root))
	if err == nil {
		err = calls[1].Wait(ctx)
	}
	switch {
	case errors.Is(err, zoo.NoNode):
		return k, nil, nil
	case err != nil:
		return nil, nil, err
	}
	return k, slices.DeleteFunc(calls[1].Children(), func(name string) bool {
		key, ok := keyOf(name)
		return !ok || !strings.HasPrefix(key, prefix)
	}), nil
}

// Break implements [driver.Inspector]. The watch on the node notifies the owner.
func (s *Store) Break(ctx context.Context, key, id string) error {
	tried := false // with unknown success
	return retry(ctx, func() error {
		k, p, err := s.placeOf(ctx, key, id)
		if err == nil {
			err = k.breakPlace(ctx, s.dir(key), p)
			tried = tried || errors.Is(err, zoo.ErrUnknown)
		}
		if tried && errors.Is(err, driver.ErrLost) {
			return nil // the unanswered try has broken the claim
		}
		return err
	})
}

// placeOf returns the place of a claim, and a session for requests about the claim.
func (s *Store) placeOf(ctx context.Context, key, id string) (*session, place, error) {
	k, err := s.session(ctx, usual)
	if err != nil {
		return nil, place{}, err
	}
	q, _, err := k.list(ctx, s.dir(key))
	if err = cmp.Or(err, q.unread(key)); err != nil {
		return nil, place{}, err
	}
	at := q.find(id)
	if at < 0 {
		return nil, place{}, driver.ErrLost
	}
	return k, q.places[at], nil
}

func (k *session) breakPlace(ctx context.Context, dir string, p place) error {
	remove := []zoo.Request{zoo.Delete(dir + "/" + p.name)}
	if p.shared() {
		remove = append(remove, zoo.Multi(remove[0], zoo.Delete(dir+"/"+phaseName+"/"+p.id)))
		slices.Reverse(remove) // both nodes, or only the place of a reader outside the phase
	}
	calls, err := k.zoo.Send(ctx, remove...)
	if err != nil {
		return err
	}
	for _, call := range calls {
		if err = call.Wait(ctx); !errors.Is(err, zoo.NoNode) {
			return err
		}
	}
	return driver.ErrLost
}

// Check implements [driver.Checker]. It warns of servers that keep sessions for less
// time than locks with the usual TTL need, and of a password sent unencrypted. It
// returns an error if the user may not read the keys.
func (s *Store) Check(ctx context.Context) (warnings []string, err error) {
	err = retry(ctx, func() (err error) {
		warnings, err = s.check(ctx)
		return err
	})
	return warnings, err
}

func (s *Store) check(ctx context.Context) (warnings []string, err error) {
	k, err := s.session(ctx, usual)
	if err != nil {
		return nil, err
	}
	calls, err := k.zoo.Send(ctx, zoo.List(s.root))
	if err == nil {
		err = calls[0].Wait(ctx)
	}
	if err != nil && !errors.Is(err, zoo.NoNode) {
		return nil, err
	}
	if s.config.Auth != nil && s.config.TLS == nil {
		warnings = hosturl.Plain(s.config.Servers, "use tls=true")
	}
	if cover := k.cover(); cover < usual {
		warnings = append(warnings, fmt.Sprintf("the servers end sessions after %v of silence, so that locks are granted for %v at a time, whatever their TTL, "+
			"and are lost when the servers cannot be reached for that long: set maxSessionTimeout to twice the TTL", k.zoo.Timeout(), cover))
	}
	return warnings, nil
}
