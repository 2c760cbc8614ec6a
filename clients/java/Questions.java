import org.openapitools.client.model.AcceleratorReference;
import org.openapitools.client.model.AssumedEfficiency;
import org.openapitools.client.model.CatalogAccelerator;
import org.openapitools.client.model.ClusterInput;
import org.openapitools.client.model.EfficiencyInput;
import org.openapitools.client.model.ModelReference;
import org.openapitools.client.model.ParameterCountModel;
import org.openapitools.client.model.Purchase;
import org.openapitools.client.model.Rental;
import org.openapitools.client.model.TrainingWorkloadInput;
import org.openapitools.client.model.UtilityBillRequest;
import org.openapitools.client.model.WorkloadInput;

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
