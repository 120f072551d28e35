package certlock_test

import (
	"context"
	"log"

	"github.com/caddyserver/certmagic"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/certlock"
	"github.com/holdfast-go/holdfast/filelock"
)

// Any store will do: the files of one directory, Redis, a database.
func Example() {
	store, err := filelock.New("/run/app/locks", nil)
	if err != nil {
		log.Fatal(err)
	}
	locks, err := holdfast.New(store, &holdfast.Options{Prefix: "certs/"})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	certmagic.Default.Storage = certlock.New(&certmagic.FileStorage{Path: "/shared/certs"}, locks)
	config := certmagic.NewDefault()
	if err := config.ManageSync(context.Background(), []string{"example.com"}); err != nil {
		log.Fatal(err)
	}
}
