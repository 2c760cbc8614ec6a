// The cheapest of several ways to train a model: a search that is waited for.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	ironlaw "github.com/GIT_USER_ID/GIT_REPO_ID"
	"ironlaw/connection"
)

func rented(accelerator, price string) ironlaw.RentedDevices {
	rental := ironlaw.NewRental()
	rental.SetPricePerDeviceHour(connection.USD(price))
	name := accelerator + " at " + price + " USD"
	return *ironlaw.NewRentedDevices(name, connection.Devices(accelerator, 16), *rental)
}

func question() ironlaw.PlanRequest {
	model := ironlaw.NewCatalogModel("catalog", "llama-3.1-8b")
	workload := ironlaw.NewTrainingWorkloadInput("training")
	workload.SetSequenceLength(8192)
	workload.SetGlobalBatchSize(64)
	workload.SetTotalTokens(1_000_000_000)
	search := ironlaw.NewPlanSearch()
	search.SetOffers(false)
	search.SetAcceleratorCounts([]int64{8, 16})
	asked := ironlaw.NewPlanRequest(
		ironlaw.CatalogModelAsModelReference(model),
		ironlaw.TrainingWorkloadInputAsWorkloadInput(workload),
		ironlaw.PLAN_GOAL_CHEAPEST,
	)
	asked.SetRented([]ironlaw.RentedDevices{rented("h100-sxm", "2.50"), rented("a100-sxm-80gb", "1.30")})
	asked.SetSearch(*search)
	return *asked
}

func main() {
	plans, ctx := connection.Connect().PlansAPI, context.Background()
	plan, _, err := plans.CreatePlan(ctx).PlanRequest(question()).Execute()
	connection.Check(err)
	for plan.State == ironlaw.PLAN_STATE_RUNNING {
		time.Sleep(500 * time.Millisecond)
		plan, _, err = plans.GetPlan(ctx, plan.Id).Execute()
		connection.Check(err)
	}
	if plan.Answer == nil {
		fmt.Fprintf(os.Stderr, "the plan is %s: %s\n", plan.State, plan.GetErrorSummary())
		os.Exit(1)
	}
	for _, row := range plan.Answer.Rows[:min(3, len(plan.Answer.Rows))] {
		layout := fmt.Sprintf("tensor %d, sharding %s", row.Parallelism.Tensor, row.Parallelism.Sharding)
		cost := connection.Money(row.Cost)
		fmt.Printf("%d. %s: %d devices, %s, %s\n", row.Rank, row.Supply.Name, row.AcceleratorCount, layout, cost)
	}
}
