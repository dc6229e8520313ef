package preset

import "retrylab/caller/policy"

// OpenFeign is Spring Cloud's Feign as it comes: a retryer that never retries.
var OpenFeign = &Preset{
	Name:     "openfeign",
	Entry:    "spring-cloud-openfeign",
	Group:    spring,
	Title:    "Spring Cloud OpenFeign, its own defaults",
	Version:  "5.0.2 with Feign 13.6.1; never-retry is its default since January 2017",
	Verified: "both",
	Source: []string{
		"spring-cloud/spring-cloud-openfeign FeignClientsConfiguration.java@v5.0.2 feignRetryer",
		"spring-cloud/spring-cloud-openfeign FeignClientProperties.java@v5.0.2, v4.0.0, v3.1.9",
		"spring-cloud/spring-cloud-openfeign FeignClientFactoryBean.java@v5.0.2 configureUsingConfiguration, configureUsingProperties, getTarget",
		"spring-cloud/spring-cloud-openfeign clientconfig/HttpClient5FeignConfiguration.java@v5.0.2 httpClient5",
		"OpenFeign/feign hc5 ApacheHttp5Client.java configureTimeoutsAndRedirection",
	},
	Counts:      "tries in total: one",
	Doc:         "One try; what is sent more often is sent by the client below it, or by a load balancer.",
	NotRetried:  []string{"everything, at this layer"},
	Waits:       "none",
	Timeouts:    "Feign's connect 10 s and read 60 s unless connectTimeout and readTimeout are set",
	OnByDefault: "no retry by default: a bean Retryer.NEVER_RETRY, unless there is another bean",
	Originals: []Original{
		{"a bean of type Retryer, or spring.cloud.openfeign.client.config.<name>.retryer (then it is preset feign-retryer)", "", "Retryer.NEVER_RETRY"},
	},
	Traps: []string{
		"Never is not one request on the wire: with feign-hc5 on the classpath HttpClient 5 sends a POST that was answered 503 or 429 twice.",
		"The properties were named feign.client.* up to 3.1.x; since 4.0.0 the old name is read by nobody.",
		"A client with a fixed url has no load balancer, so that layer's retries go too.",
	},
	Layer: func(policy.Settings) (policy.Layer, error) {
		return policy.Layer{Attempts: 1, Limit: "Retryer.NEVER_RETRY"}, nil
	},
	Body:  policy.Fixed,
	Over:  []string{"httpurlconnection"},
	words: feignWords(),
}
