package vtime_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"retrylab/internal/vtime"
)

// A caller gives up after five seconds; the server answers after twelve. It
// takes no time.
func Example() {
	err := vtime.Bubble(func() {
		clock := vtime.NewVirtual(time.Date(2026, time.March, 1, 9, 0, 0, 0, time.UTC))
		network := vtime.NewMemory(clock, 1)
		defer network.Close()
		listener, err := network.Listen("orders")
		if err != nil {
			panic(err)
		}
		say := func(what string) {
			fmt.Printf("%3v %s %s\n", clock.Now().Round(time.Second), clock.Date().Format(time.TimeOnly), what)
		}

		var machines vtime.Group
		machines.Go(func() {
			conn, err := listener.Accept()
			if err != nil {
				panic(err)
			}
			defer conn.Close()
			request := make([]byte, 5)
			io.ReadFull(conn, request)
			say("server: got " + string(request))
			clock.Sleep(context.Background(), 12*time.Second)
			say("server: done")
		})
		machines.Go(func() {
			gaveUp := errors.New("gave up")
			ctx, cancel := clock.WithTimeout(context.Background(), 5*time.Second, gaveUp)
			defer cancel()
			conn, err := network.Dial(ctx, "orders", "op-1")
			if err != nil {
				panic(err)
			}
			io.WriteString(conn, "order")
			<-ctx.Done()
			conn.Close()
			say("caller: " + context.Cause(ctx).Error())
		})
		if err := machines.Wait(); err != nil {
			panic(err)
		}
		say(fmt.Sprintf("busy: %v", network.Busy()))
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	//  0s 09:00:00 server: got order
	//  5s 09:00:05 caller: gave up
	// 12s 09:00:12 server: done
	// 12s 09:00:12 busy: false
}
