package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// bankTime is how long the payment provider takes.
const bankTime = 3 * time.Millisecond

// A charge is a server's request for a buyer's money. What a server knows at
// that moment goes with it, for the scene with the pause.
type charge struct {
	Server string
	PID    int
	Buyer  string
	Token  uint64
	Left   int
}

// toBank keeps its connections: a server has up to maxBuyers open at a time.
var toBank = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: maxBuyers}}

// send asks the bank for the money.
func (c charge) send(ctx context.Context, bank string) error {
	body, err := json.Marshal(c)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, bank, bytes.NewReader(body))
	if err != nil {
		return err
	}
	reply, err := toBank.Do(r)
	if err != nil {
		return fmt.Errorf("payment: %w", err)
	}
	defer reply.Body.Close()
	if reply.StatusCode != http.StatusNoContent {
		return fmt.Errorf("payment: the bank says %s", reply.Status)
	}
	return nil
}

// bank is the payment provider: pay says yes by returning.
func bank(pay func(context.Context, charge)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var c charge
		if err := json.NewDecoder(r.Body).Decode(&c); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		pay(r.Context(), c)
		w.WriteHeader(http.StatusNoContent)
	})
}

// payLater is the bank of the sale.
func payLater(ctx context.Context, _ charge) {
	select {
	case <-time.After(bankTime):
	case <-ctx.Done():
	}
}
