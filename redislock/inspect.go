package redislock

import (
	"context"
	"errors"
	"iter"

	"github.com/holdfast-go/holdfast/driver"
)

// Holders implements [driver.Inspector].
func (s *Store) Holders(ctx context.Context, key string) ([]driver.Holder, error) {
	claims, unread, err := s.claims(ctx, key)
	if err = errors.Join(err, unread); err != nil {
		return nil, err
	}
	holders := make([]driver.Holder, len(claims[0]))
	for i, c := range claims[0] {
		holders[i] = c.Holder
	}
	return holders, nil
}

// claims returns the live claims of each key. unread is about the keys whose records a newer
// release has written: no claims are returned of these.
func (s *Store) claims(ctx context.Context, keys ...string) (all [][]claim, unread, err error) {
	if err := s.usable(); err != nil {
		return nil, nil, err
	}
	calls := make([]Command, len(keys))
	for i, key := range keys {
		calls[i] = holdersScript().call(s.names.all(key, "")[:3])
	}
	all = make([][]claim, len(keys))
	for i, r := range eval(ctx, s.conn, holdersScript(), calls...) {
		if r.Err != nil {
			return nil, nil, r.Err
		}
		unread = errors.Join(unread, unknown(r.Value, keys[i]))
		list, _ := r.Value.([]any)
		for _, e := range list {
			fields, _ := e.([]any)
			c, ok := holder(fields)
			if !ok {
				return nil, nil, errReply
			}
			all[i] = append(all[i], c)
		}
	}
	return all, unread, nil
}

// Break implements [driver.Inspector].
func (s *Store) Break(ctx context.Context, key, id string) error {
	claims, unread, err := s.claims(ctx, key)
	if err = errors.Join(err, unread); err != nil {
		return err
	}
	for _, c := range claims[0] {
		if c.ID == id {
			return s.breakClaim(ctx, key, c.id)
		}
	}
	return driver.ErrLost
}

func (s *Store) breakClaim(ctx context.Context, key, id string) error {
	call := breakScript().call(s.names.all(key, id), id, itoa(lateness.Milliseconds()))
	r := eval(ctx, s.conn, breakScript(), call)[0]
	if r.Err != nil {
		return r.Err
	}
	if err := unknown(r.Value, key); err != nil {
		return err
	}
	text, ok := r.Value.(string)
	if !ok {
		return driver.ErrLost
	}
	d, ok := readDetails(text)
	if !ok {
		return errReply
	}
	// If the message is lost, the owner learns of the Break at the next renewal or retry.
	s.conn.Do(ctx, Command{Words: []string{"PUBLISH", s.lossChannel(d.client).Name}, Args: []string{lossMessage(key, id)}})
	return nil
}

// Keys implements [driver.Inspector]. Keys scans all Redis keys of each primary, a
// thousand at a time; for a large server the scan is a lot of work.
func (s *Store) Keys(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		seen := make(map[string]bool)
		var later error // about records that cannot be read, which hide no key
		for names, err := range s.scan(ctx, prefix) {
			if err != nil {
				yield("", err)
				return
			}
			var keys []string
			for _, name := range names {
				if key, ok := s.names.key(name); ok && !seen[key] {
					seen[key] = true
					keys = append(keys, key)
				}
			}
			claims, unread, err := s.claims(ctx, keys...)
			later = errors.Join(later, unread)
			if err != nil {
				yield("", err)
				return
			}
			for i, key := range keys {
				if len(claims[i]) > 0 && !yield(key, nil) {
					return
				}
			}
		}
		if later != nil {
			yield("", later)
		}
	}
}

// scan yields pages of the Redis keys that belong to keys with a prefix. A Redis key may
// appear more than once.
func (s *Store) scan(ctx context.Context, prefix string) iter.Seq2[[]string, error] {
	return func(yield func([]string, error) bool) {
		if err := s.usable(); err != nil {
			yield(nil, err)
			return
		}
		nodes, err := s.conn.Primaries(ctx)
		if err != nil {
			yield(nil, err)
			return
		}
		for _, node := range nodes {
			for _, pattern := range s.names.patterns(prefix) {
				for cursor, more := "0", true; more; more = cursor != "0" {
					var names []string
					names, cursor, err = page(ctx, node, pattern, cursor)
					if !yield(names, err) || err != nil {
						return
					}
				}
			}
		}
	}
}

func page(ctx context.Context, node Conn, pattern, cursor string) (names []string, next string, err error) {
	r := node.Do(ctx, Command{Words: []string{"SCAN", cursor, "MATCH", pattern, "COUNT", "1000"}})[0]
	if r.Err != nil {
		return nil, "", r.Err
	}
	list, _ := r.Value.([]any)
	if len(list) != 2 {
		return nil, "", errReply
	}
	next, ok := list[0].(string)
	found, ok2 := list[1].([]any)
	if !ok || !ok2 {
		return nil, "", errReply
	}
	for _, name := range found {
		if name, ok := name.(string); ok {
			names = append(names, name)
		}
	}
	return names, next, nil
}
