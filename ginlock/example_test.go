package ginlock_test

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/ginlock"
	"github.com/holdfast-go/holdfast/httplock"
	"github.com/holdfast-go/holdfast/memlock"
)

// One withdrawal at a time from each account.
func ExampleWrap() {
	locks, err := holdfast.New(memlock.New(), nil) // or holdfast.Open of your store
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	engine := gin.New()
	perAccount := httplock.Locked(locks, httplock.PathValue("id"), nil)
	engine.POST("/accounts/:id/withdraw", ginlock.Wrap(perAccount), func(c *gin.Context) {
		ctx := c.Request.Context() // ends if the lock is lost
		lock, _ := holdfast.FromContext(ctx)
		c.String(http.StatusOK, "nobody else withdraws under %s", lock.Key())
	})

	w := httptest.NewRecorder()
	engine.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/accounts/42/withdraw", nil))
	fmt.Println(w.Code, w.Body)
	// Output: 200 nobody else withdraws under path/id/42
}
