package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// bankTime is how long the payment provider takes.
const bankTime = 3 * time.Millisecond

// A charge is a request for a buyer's payment. For the scene with the pause, the charge
// also carries what the server knows at the time.
type charge struct {
	Server string
	PID    int
	Buyer  string
	Token  uint64
	Left   int
}

// send requests the payment from the bank.
func (c charge) send(ctx context.Context, bank string) error {
	reply, err := call(ctx, http.MethodPost, bank, c)
	if err != nil {
		return fmt.Errorf("payment: %w", err)
	}
	defer reply.Body.Close()
	if reply.StatusCode != http.StatusNoContent {
		return fmt.Errorf("payment: the bank says %s", reply.Status)
	}
	return nil
}

// bank is the payment provider. A payment is confirmed when pay returns.
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

// payLater is the bank of the sale: payLater returns after bankTime.
func payLater(ctx context.Context, _ charge) {
	select {
	case <-time.After(bankTime):
	case <-ctx.Done():
	}
}
