"""LightGBM as a careless change would leave it: regressions that a check must find, and changes that harm nobody."""

from dataclasses import replace

import numpy as np

from boosters_eval.metrics.task import Task
from boosters_eval.runners.boosters_runner import BoostersRunner
from boosters_eval.runners.lightgbm_runner import LightGBMRunner
from boosters_eval.runners.xgboost_runner import XGBoostRunner


class _Changed(LightGBMRunner):
    """A build whose training differs in native parameters that nobody is told of."""

    @classmethod
    def changes(cls, native):
        return {}

    @classmethod
    def fit(cls, translation, dataset):
        native = {**translation.native, **cls.changes(translation.native)}
        return super().fit(replace(translation, native=native), dataset)


class FewerTrees(_Changed):
    @classmethod
    def changes(cls, native):
        name = next(name for name in native if name in ("num_iterations", "n_estimators", "num_boost_round"))
        return {name: round(0.7 * native[name])}


class SlowLearner(_Changed):
    @classmethod
    def changes(cls, native):
        return {"learning_rate": 0.95 * native["learning_rate"]}


class WrongDefault(_Changed):
    @classmethod
    def changes(cls, native):
        return {"num_leaves": 8}


class BaseScoreOff(LightGBMRunner):
    """Every prediction is too high by the same amount."""

    @classmethod
    def predict(cls, translation, model, x):
        said = super().predict(translation, model, x)
        if translation.request.task is Task.BINARY:
            return 1 / (1 + np.exp(-np.log(said / (1 - said)) - 0.5))
        return said + 0.3 if translation.request.task is Task.REGRESSION else said


class NoBaseScore(_Changed):
    """Training begins at 0 instead of the mean."""

    @classmethod
    def changes(cls, native):
        return {"boost_from_average": False}


class OneClassIgnored(LightGBMRunner):
    @classmethod
    def predict(cls, translation, model, x):
        said = np.array(super().predict(translation, model, x))
        if said.ndim == 2:
            said[:, 1] = 1e-4
            said /= said.sum(axis=1, keepdims=True)
        return said


class LabelsSwapped(LightGBMRunner):
    """Of two classes, each is learned as the other."""

    @classmethod
    def build(cls, translation, data):
        two = translation.request.task is Task.BINARY
        return super().build(translation, replace(data, y=1 - data.y) if two else data)


class StoppingIgnored(_Changed):
    """Training goes on to the last round."""

    @classmethod
    def changes(cls, native):
        return {"early_stopping_rounds": None}


class WeightsLost(LightGBMRunner):
    @classmethod
    def build(cls, translation, data):
        return super().build(translation, replace(data, weights=None))


class HalfOfTheRows(LightGBMRunner):
    @classmethod
    def build(cls, translation, data):
        return super().build(translation, data.take(np.arange(0, len(data.y), 2)))


class MissingReadAsZero(LightGBMRunner):
    """Where a value is missing, the model goes the way of zero instead of its own."""

    @classmethod
    def predict(cls, translation, model, x):
        return super().predict(translation, model, np.nan_to_num(x, nan=0.0))


class MoreL2(_Changed):
    @classmethod
    def changes(cls, native):
        return {"lambda_l2": 1.05 * native["lambda_l2"]}


class LessL2(_Changed):
    @classmethod
    def changes(cls, native):
        return {"lambda_l2": 0.95 * native["lambda_l2"]}


class OneBinFewer(_Changed):
    @classmethod
    def changes(cls, native):
        return {"max_bin": native["max_bin"] - 1}


class _Reversed:
    """The order of the columns, in which ties are broken."""

    @classmethod
    def build(cls, translation, data):
        return super().build(translation, replace(data, x=np.ascontiguousarray(data.x[:, ::-1])))

    @classmethod
    def predict(cls, translation, model, x):
        return super().predict(translation, model, np.ascontiguousarray(x[:, ::-1]))


class ColumnsReversed(_Reversed, LightGBMRunner):
    pass


class BoostersReversed(_Reversed, BoostersRunner):
    pass


class XGBoostReversed(_Reversed, XGBoostRunner):
    pass


class OtherRows(LightGBMRunner):
    """The order of the training rows, in which sums are rounded."""

    @classmethod
    def build(cls, translation, data):
        return super().build(translation, data.take(np.arange(len(data.y))[::-1]))


PLANTED = (FewerTrees, BaseScoreOff, NoBaseScore, OneClassIgnored, SlowLearner, WrongDefault)
HARMLESS = (MoreL2, LessL2, OneBinFewer, ColumnsReversed, OtherRows)
REVERSED = {"boosters": BoostersReversed, "lightgbm": ColumnsReversed, "xgboost": XGBoostReversed}
