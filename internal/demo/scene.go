package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/holdfast-go/holdfast/internal/shown"
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

// A reply is the final answer to a buyer.
type reply struct {
	answer
	err error
}

// scene plays the sale of one item by two servers. The first server is stopped while the
// server holds the lock and waits for the payment. The first server has seen the item, and
// would write next.
func (s *stage) scene(ctx context.Context, fenced bool) (_ Scene, err error) {
	s.progress("the pause: a server is frozen until its lock has run out after %v", s.TTL)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	t := &take{charges: make(chan pending)}
	t.Fenced, t.TTL = fenced, shown.Seconds(s.TTL)
	bank, err := openSite(bank(t.charged))
	if err != nil {
		return Scene{}, err
	}
	defer bank.close()
	item := fmt.Sprintf("the last item, fenced %v", fenced)
	j := s.offer(item, 1, bank)
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
	_, t.Sold, err = s.shop.look(item)
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
	defer t.first.thaw() // also if the scene fails midway
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

// overtake lets the second server sell the item. The second server has to wait until the
// lease of the first has expired.
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

// charged is the bank of the scene. The bank confirms a payment when the scene closes the
// channel paid.
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

// charge waits until a server requests the payment of the buyer. A reply to the buyer
// before the payment is an error.
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

// outcome waits for the reply to a buyer: the item, or the report that the shop rejected
// the write.
func (t *take) outcome(ctx context.Context, p *process, buyer <-chan reply) (reply, error) {
	select {
	case r := <-buyer:
		switch {
		case r.Sold:
			t.tell(p, r.Token, "has sold the item")
		case r.Stale:
			t.tell(p, r.Token, "is refused by the shop, which has seen a larger token")
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
		Seconds: shown.Seconds(time.Since(t.began)),
		Server:  p.name,
		PID:     p.Cmd.Process.Pid,
		Token:   token,
		Text:    text,
	})
}
