module github.com/holdfast-go/holdfast/grpclock

go 1.25.0

require (
	github.com/holdfast-go/holdfast v0.1.0
	github.com/holdfast-go/holdfast/redislock v0.1.0
	google.golang.org/genproto/googleapis/rpc v0.0.0-20251202230838-ff82c1b0f217
	google.golang.org/grpc v1.79.3
	google.golang.org/protobuf v1.36.12
)

require (
	github.com/redis/rueidis v1.0.79 // indirect
	golang.org/x/net v0.57.0 // indirect
	golang.org/x/sys v0.47.0 // indirect
	golang.org/x/text v0.41.0 // indirect
)
