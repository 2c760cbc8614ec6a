import ironlaw.model.AcceleratorReference;
import ironlaw.model.AssumedEfficiency;
import ironlaw.model.CatalogAccelerator;
import ironlaw.model.ClusterInput;
import ironlaw.model.EfficiencyInput;
import ironlaw.model.ModelReference;
import ironlaw.model.ParameterCountModel;
import ironlaw.model.Purchase;
import ironlaw.model.Rental;
import ironlaw.model.TrainingWorkloadInput;
import ironlaw.model.UtilityBillRequest;
import ironlaw.model.WorkloadInput;

/** What several examples ask. */
final class Questions {
    private Questions() {}

    static ClusterInput devices(String id, long count) {
        var accelerator = new CatalogAccelerator().source(CatalogAccelerator.SourceEnum.CATALOG).id(id);
        return new ClusterInput().accelerator(new AcceleratorReference(accelerator)).acceleratorCount(count);
    }

    static Rental at(String price) {
        return new Rental().pricePerDeviceHour(Connection.usd(price));
    }

    /** A training run on a thousand devices, rented or bought. */
    static UtilityBillRequest run() {
        var model = new ParameterCountModel()
                .source(ParameterCountModel.SourceEnum.PARAMETER_COUNT)
                .parameterCount(70_000_000_000L);
        var workload = new TrainingWorkloadInput()
                .kind(TrainingWorkloadInput.KindEnum.TRAINING)
                .totalTokens(2_000_000_000_000L)
                .sequenceLength(4096L);
        var half = new AssumedEfficiency().source(AssumedEfficiency.SourceEnum.ASSUMED).utilization(0.5);
        return new UtilityBillRequest()
                .model(new ModelReference(model))
                .workload(new WorkloadInput(workload))
                .cluster(devices("h100-sxm", 1000))
                .efficiency(new EfficiencyInput(half))
                .rental(at("3"))
                .purchase(new Purchase().pricePerDevice(Connection.usd("30000")));
    }
}
