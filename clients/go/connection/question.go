package connection

import ironlaw "github.com/GIT_USER_ID/GIT_REPO_ID"

// Devices are as many accelerators of a kind.
func Devices(accelerator string, count int64) ironlaw.ClusterInput {
	kind := ironlaw.NewCatalogAccelerator("catalog", accelerator)
	cluster := ironlaw.NewClusterInput(ironlaw.CatalogAcceleratorAsAcceleratorReference(kind))
	cluster.SetAcceleratorCount(count)
	return *cluster
}

// Question asks for a training run on a thousand devices, rented or bought.
func Question() ironlaw.UtilityBillRequest {
	model := ironlaw.NewParameterCountModel("parameter_count", 70_000_000_000)
	workload := ironlaw.NewTrainingWorkloadInput("training")
	workload.SetTotalTokens(2_000_000_000_000)
	workload.SetSequenceLength(4096)
	half := ironlaw.NewAssumedEfficiency("assumed", 0.5)
	rental := ironlaw.NewRental()
	rental.SetPricePerDeviceHour(USD("3"))
	asked := ironlaw.NewUtilityBillRequest(
		ironlaw.ParameterCountModelAsModelReference(model),
		ironlaw.TrainingWorkloadInputAsWorkloadInput(workload),
		Devices("h100-sxm", 1000),
	)
	asked.SetEfficiency(ironlaw.AssumedEfficiencyAsEfficiencyInput(half))
	asked.SetRental(*rental)
	purchase := ironlaw.NewPurchase()
	purchase.SetPricePerDevice(USD("30000"))
	asked.SetPurchase(*purchase)
	return *asked
}
