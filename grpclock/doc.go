// Package grpclock lets gRPC servers run one call per key at a time, across all of their
// processes, and carries fencing tokens from clients to servers.
//
//	server := grpc.NewServer(
//		grpc.ChainUnaryInterceptor(grpclock.UnaryServerInterceptor(locks, key, nil)),
//		grpc.ChainStreamInterceptor(grpclock.StreamServerInterceptor(locks, key, nil)),
//	)
//
// A [KeyFunc] returns the key that a call needs. The KeyFunc sees the method, the request
// and the context with the caller's metadata. The key "" leaves a call unguarded:
//
//	func key(ctx context.Context, method string, req any) (string, error) {
//		switch r := req.(type) {
//		case *bankpb.WithdrawRequest:
//			return "account/" + r.GetAccount(), nil
//		}
//		return "", nil
//	}
//
// When a stream begins, its request is not known: the key of a stream comes from the
// method, the metadata or the context. Two methods with the same key exclude each other;
// put the method into the key if they should not. Keys are the keys of the
// [holdfast.Locker], with its prefix, so other programs can acquire the same locks.
//
// # What callers see
//
//	Aborted             another call holds the lock (LOCK_HELD), or the lock was lost while
//	                    the handler ran (LOCK_LOST), which then may not have been alone
//	InvalidArgument     the key is required and missing, too long or not UTF-8 (KEY_INVALID)
//	Unavailable         the store of the locks does not answer (STORE_UNREACHABLE)
//	Internal            the server has made an impossible request (LOCK_INVALID), as with
//	                    a wrong option: an error of the program
//	Canceled, DeadlineExceeded
//	                    the caller went away while it waited
//
// The words in capitals are the reason in the ErrorInfo of the status, in the domain
// [Domain]. LOCK_HELD comes with a RetryInfo: the rest of the holder's lease. After a crash
// of the holder, that time is an upper bound; a live holder may release the lock at any
// moment, or renew. Clients in Go read all details by [RefusalOf]. Interceptors outside of
// these, such as a logging interceptor, find the cause in the error by errors.Is and
// errors.As. Answers to clients never name the holder or the store.
//
// # While the handler runs
//
// The handler's context carries the lock ([holdfast.FromContext]) and ends when the lock is
// lost, with the reason as its cause. The lock is released when the handler returns, also
// after a panic; not earlier, because the handler may be at work until then. So a handler
// has to return when its context ends, including when the client cancels or goes away. Set
// [holdfast.MaxHold] against handlers that do not return.
//
// A stream holds its lock from its beginning to its end. Once the lock of a stream is lost,
// messages are neither received nor sent. A handler that is already waiting for a message
// notices the loss with the next message.
//
// # Fencing tokens
//
// A lock that the client holds guards the server's work only if the server rejects the
// calls of clients that have lost their locks. [UnaryClientFence] and [StreamClientFence]
// send the key and the token of the lock in the context, as holdfast-key-bin and
// holdfast-fence in the metadata:
//
//	conn, err := grpc.NewClient(target, grpc.WithUnaryInterceptor(grpclock.UnaryClientFence))
//
//	err = locks.Do(ctx, "account/42", func(ctx context.Context) error {
//		_, err := bankpb.NewBankClient(conn).Withdraw(ctx, &bankpb.WithdrawRequest{Account: "42"})
//		return err
//	})
//
// [UnaryServerFence] and [StreamServerFence] check the key and the token:
//
//	server := grpc.NewServer(grpc.ChainUnaryInterceptor(grpclock.UnaryServerFence(&fence.Memory{}, key)))
//
// If a larger token has been seen before, the call gets FailedPrecondition
// (TOKEN_OUTDATED). Without a token for the key that the call needs, the call gets
// InvalidArgument (TOKEN_MISSING, TOKEN_INVALID). If the context carries several locks, the
// innermost counts. Exclusive and shared locks fit; the tokens of slots are not comparable.
//
// [fence.Memory] suits a server that is the only writing process: the Memory remembers
// tokens until the process ends, and lets a call with a larger token wait until the
// handlers of smaller tokens have returned. If several processes write, or tokens must
// survive a restart, the write itself has to check the token, as by fence.SQL in its
// transaction: the handler gets key and token from [Token].
//
// Use fences only for trusted callers, as with the locks. Every caller can send a token,
// also a token that is much too large and shuts out all other callers.
package grpclock
