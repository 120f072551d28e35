package demo

import (
	"context"
	"errors"
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/shown"
)

// round sells the stock once, under one guard.
func (s *stage) round(ctx context.Context, g Guard) (_ Round, err error) {
	s.progress("%s: starting the servers", g)
	bank, err := openSite(bank(payLater))
	if err != nil {
		return Round{}, err
	}
	defer bank.close()
	j := s.offer(string(g), s.Stock, bank)
	j.Guard = g
	servers, err := s.startFleet(ctx, s.Servers, j)
	if err != nil {
		return Round{}, err
	}
	defer func() { err = errors.Join(err, servers.stop()) }()
	proxy, err := roundRobin(servers.urls())
	if err != nil {
		return Round{}, err
	}
	door, err := openSite(proxy)
	if err != nil {
		return Round{}, err
	}
	defer door.close()
	c := s.rush(ctx, g, door.url)
	if ctx.Err() != nil {
		return Round{}, context.Cause(ctx)
	}
	return s.count(g, c)
}

// count adds a round up. The number of sales comes from the shop.
func (s *stage) count(g Guard, c *crowd) (Round, error) {
	rate := float64(len(c.visits)) / c.duration.Seconds()
	r := Round{Guard: g, Seconds: shown.Seconds(c.duration), PerSecond: math.Round(10*rate) / 10}
	var err error
	if r.Left, r.Sold, err = s.shop.look(string(g)); err != nil {
		return r, err
	}
	r.Oversold = max(0, r.Sold-s.Stock)
	var times []time.Duration
	for _, v := range c.visits {
		times = append(times, v.took)
		if v.err != nil {
			r.Errors++
			r.Error = v.err.Error()
		} else if v.status == http.StatusConflict {
			r.Refused++
		}
	}
	slices.Sort(times)
	r.P50, r.P99 = quantile(times, 50), quantile(times, 99)
	r.Verdict = s.verdict(r)
	return r, nil
}

// quantile returns the time in milliseconds within which percent of the buyers were
// served.
func quantile(sorted []time.Duration, percent int) float64 {
	last := (len(sorted)*percent + 99) / 100 // rounded up
	return float64(sorted[last-1].Microseconds()) / 1000
}
