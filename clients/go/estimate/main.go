// Rent or buy: what a training run on a thousand devices costs, either way.
package main

import (
	"context"
	"fmt"

	"ironlaw/connection"
)

func main() {
	estimates := connection.Connect().EstimatesAPI
	question := connection.Question()
	bill, _, err := estimates.EstimateUtilityBill(context.Background()).UtilityBillRequest(question).Execute()
	connection.Check(err)
	fmt.Printf("rent %s, purchase %s\n", connection.Money(bill.Rent.Total), connection.Money(bill.Purchase.Total))
	if bill.BreakEvenRuns != nil {
		fmt.Printf("the purchase pays itself back after %.2f runs\n", bill.BreakEvenRuns.Value)
	}
	for _, gap := range bill.Gaps {
		fmt.Printf("not known: %s, %s\n", gap.Pointer, gap.Detail)
	}
}
