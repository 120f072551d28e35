package main

import (
	"context"
	"strconv"

	"github.com/redis/rueidis"
)

// A stock is the number of items left and the list of orders, both in Redis. Two
// commands read and write the number, just as an ORM loads and saves a row.
type stock struct{ client rueidis.Client }

const stockKey, ordersKey = "flashsale/stock", "flashsale/orders"

// offer begins a new sale of n items.
func (s stock) offer(ctx context.Context, n int) error {
	for _, result := range s.client.DoMulti(ctx,
		s.client.B().Del().Key(ordersKey).Build(),
		s.client.B().Set().Key(stockKey).Value(strconv.Itoa(n)).Build(),
	) {
		if err := result.Error(); err != nil {
			return err
		}
	}
	return nil
}

// left reads the number of items left.
func (s stock) left(ctx context.Context) (int64, error) {
	return s.client.Do(ctx, s.client.B().Get().Key(stockKey).Build()).AsInt64()
}

// save writes an order, and the number of items left after the order.
func (s stock) save(ctx context.Context, buyer string, left int64) error {
	for _, result := range s.client.DoMulti(ctx,
		s.client.B().Set().Key(stockKey).Value(strconv.FormatInt(left, 10)).Build(),
		s.client.B().Rpush().Key(ordersKey).Element(buyer).Build(),
	) {
		if err := result.Error(); err != nil {
			return err
		}
	}
	return nil
}

// orders counts the orders of the sale, which no race can change.
func (s stock) orders(ctx context.Context) (int64, error) {
	return s.client.Do(ctx, s.client.B().Llen().Key(ordersKey).Build()).AsInt64()
}
