package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// A take is a Scene in the making.
type take struct {
	Scene
	first, second *process
	began         time.Time
	charges       chan pending
}

// A pending charge waits for its money.
type pending struct {
	charge
	paid chan struct{}
}

// A reply is what a buyer gets in the end.
type reply struct {
	answer
	err error
}

// scene plays the sale of one item by two servers. The first is stopped while
// it holds the lock and waits for its money: it has seen the item, and writes
// next.
func (s *stage) scene(ctx context.Context, fenced bool) (_ Scene, err error) {
	s.progress("the pause: a server is frozen until its lock has run out after %v", s.TTL)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	t := &take{charges: make(chan pending)}
	t.Fenced, t.TTL = fenced, s.TTL.Seconds()
	bank, err := openSite(bank(t.charged))
	if err != nil {
		return Scene{}, err
	}
	defer bank.close()
	item := fmt.Sprintf("the last item, fenced %v", fenced)
	j, err := s.offer(ctx, item, 1, bank)
	if err != nil {
		return Scene{}, err
	}
	j.Guard, j.Fenced, j.TTL = heedless, fenced, s.TTL
	servers, err := s.startFleet(ctx, 2, j)
	if err != nil {
		return Scene{}, err
	}
	defer func() { err = errors.Join(err, servers.stop()) }()
	t.first, t.second, t.began = servers[0], servers[1], time.Now()
	if err := t.play(ctx); err != nil {
		return Scene{}, err
	}
	t.Sold, err = s.shop.sold(ctx, item)
	t.Verdict = t.verdict()
	return t.Scene, err
}

func (t *take) play(ctx context.Context) error {
	buyer := visitor(ctx, t.first, "Ann")
	stale, err := t.charge(ctx, buyer)
	if err != nil {
		return err
	}
	t.Stale = stale.Token
	t.tell(t.first, t.Stale, "holds the lock, sees 1 item, asks for the money")
	if err := t.first.freeze(); err != nil {
		return err
	}
	defer t.first.thaw() // also if the scene breaks off
	close(stale.paid)
	t.tell(t.first, t.Stale, "is frozen by SIGSTOP; it would write next")
	if err := t.overtake(ctx); err != nil {
		return err
	}
	t.tell(t.first, t.Stale, "goes on after SIGCONT, and writes")
	if err := t.first.thaw(); err != nil {
		return err
	}
	r, err := t.outcome(ctx, t.first, buyer)
	if err != nil {
		return err
	}
	t.Refused, t.Lost = r.Stale, r.Lost
	t.tell(t.first, t.Stale, fmt.Sprintf("unlocks: %s (lock.Err() knew before the write)", r.Lost))
	return nil
}

// overtake lets the second server sell the item. It has to wait until the
// lease of the first has run out.
func (t *take) overtake(ctx context.Context) error {
	buyer := visitor(ctx, t.second, "Bob")
	t.tell(t.second, 0, "has a buyer too, waits for the lock")
	current, err := t.charge(ctx, buyer)
	if err != nil {
		return err
	}
	t.Token = current.Token
	t.tell(t.second, t.Token, fmt.Sprintf("holds the lock, as the lease is over; sees %d item", current.Left))
	close(current.paid)
	_, err = t.outcome(ctx, t.second, buyer)
	return err
}

// charged is the bank of the scene: it says yes when the scene does.
func (t *take) charged(ctx context.Context, c charge) {
	p := pending{c, make(chan struct{})}
	select {
	case t.charges <- p:
	case <-ctx.Done():
		return
	}
	select {
	case <-p.paid:
	case <-ctx.Done():
	}
}

// charge waits until a server asks for the money of its buyer, which it must do
// before the buyer gets a reply.
func (t *take) charge(ctx context.Context, buyer <-chan reply) (pending, error) {
	select {
	case p := <-t.charges:
		return p, nil
	case r := <-buyer:
		return pending{}, fmt.Errorf("a server answered before it took the money: %s", r.failure())
	case <-ctx.Done():
		return pending{}, context.Cause(ctx)
	}
}

// outcome waits for what a buyer gets: the item, or the word that the write of
// its server was refused.
func (t *take) outcome(ctx context.Context, p *process, buyer <-chan reply) (reply, error) {
	select {
	case r := <-buyer:
		switch {
		case r.Sold:
			t.tell(p, r.Token, "has sold the item")
		case r.Stale:
			t.tell(p, r.Token, "is refused by the database: 0 rows changed")
		default:
			return r, fmt.Errorf("%s could not sell: %s", p.name, r.failure())
		}
		return r, nil
	case <-ctx.Done():
		return reply{}, context.Cause(ctx)
	}
}

func (r reply) failure() string {
	if r.err != nil {
		return r.err.Error()
	}
	return r.Error
}

// visitor sends a buyer to one server.
func visitor(ctx context.Context, p *process, name string) <-chan reply {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	replies := make(chan reply, 1)
	go func() {
		var r reply
		_, body, err := buy(ctx, client, p.url, name)
		if err == nil {
			err = json.Unmarshal(body, &r.answer)
		}
		r.err = err
		replies <- r
	}()
	return replies
}

func (t *take) tell(p *process, token uint64, text string) {
	t.Moments = append(t.Moments, Moment{
		Seconds: time.Since(t.began).Seconds(),
		Server:  p.name,
		PID:     p.cmd.Process.Pid,
		Token:   token,
		Text:    text,
	})
}
