package verify

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/plan"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/memlock"
)

// A whole store keeps no slots.
type whole struct{ *memlock.Store }

func (s whole) Acquire(ctx context.Context, a driver.Ask) (driver.Grant, error) {
	if a.Limit < driver.MaxWeight {
		return driver.Grant{}, fmt.Errorf("%w: slots", driver.ErrInvalid)
	}
	return s.Store.Acquire(ctx, a)
}

func TestKinds(t *testing.T) {
	locks := must.Get(holdfast.New(whole{memlock.New()}, &holdfast.Options{TTL: time.Second}))
	defer locks.Close()
	target := &target{url: &url.URL{Scheme: "mem"}, name: "mem", engine: &engine{}}
	every := slices.DeleteFunc(plan.Kinds(), func(k plan.Kind) bool { return k == plan.Slots })
	for _, test := range []struct{ named, want []plan.Kind }{
		{nil, every},
		{[]plan.Kind{plan.Try, plan.Shared}, []plan.Kind{plan.Try, plan.Shared}},
		{[]plan.Kind{plan.Try, plan.Slots}, nil},
	} {
		got, err := target.kinds(t.Context(), locks, test.named)
		if !slices.Equal(got, test.want) || (err == nil) != (test.want != nil) {
			t.Errorf("of %v it keeps %v, %v; want %v", test.named, got, err, test.want)
		}
		if err != nil && (!errors.Is(err, ErrKind) || !strings.Contains(err.Error(), "slots")) {
			t.Error(err)
		}
	}
}
