// Package redislock has the signatures of the library.
package redislock

import (
	"context"
	"errors"
	"time"
)

var ErrNotObtained = errors.New("redislock: not obtained")

type Options struct{}

type Client struct{}

func (*Client) Obtain(context.Context, string, time.Duration, *Options) (*Lock, error) {
	return nil, ErrNotObtained
}

type Lock struct{}

func (*Lock) Key() string                                            { return "" }
func (*Lock) Release(context.Context) error                          { return nil }
func (*Lock) Refresh(context.Context, time.Duration, *Options) error { return nil }

func New(any) *Client { return nil }

func Obtain(context.Context, any, string, time.Duration, *Options) (*Lock, error) {
	return nil, ErrNotObtained
}
